package disktest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// system is what there is: what a disk has for sure, and what the system was told since.
type system struct {
	files   map[uint64]*file
	folders map[uint64]*folder
}

func newSystem() *system { return &system{files: map[uint64]*file{}, folders: map[uint64]*folder{}} }

// file is the content of a file.
type file struct {
	lasting, now []byte
	pending      []op // since it was synced
}

// folder has the names in a folder.
type folder struct {
	lasting, now map[string]uint64
	pending      []op
}

func newFolder() *folder {
	return &folder{lasting: map[string]uint64{}, now: map[string]uint64{}}
}

func (s *system) clone() *system {
	c := newSystem()
	for n, f := range s.files {
		c.files[n] = &file{lasting: f.lasting, now: f.now}
	}
	for n, f := range s.folders {
		c.folders[n] = &folder{lasting: maps.Clone(f.lasting), now: maps.Clone(f.now)}
	}
	return c
}

// apply makes an op.
func (s *system) apply(o op) {
	if f := s.folders[o.file]; f != nil {
		if o.kind == opSync {
			f.lasting, f.pending = maps.Clone(f.now), nil
			return
		}
		o.enter(f.now)
		f.pending = append(f.pending, o)
		switch {
		case o.kind != opLink:
		case o.folder:
			s.folders[o.entry] = newFolder()
		default:
			s.files[o.entry] = &file{}
		}
		return
	}
	f := s.files[o.file]
	switch {
	case f == nil:
	case o.kind == opSync:
		f.lasting, f.pending = slices.Clone(f.now), nil
	default:
		f.now = o.put(slices.Clone(f.now), nil)
		f.pending = append(f.pending, o)
	}
}

// enter makes a change of the names in a folder.
func (o *op) enter(names map[string]uint64) {
	switch o.kind {
	case opLink:
		names[o.name] = o.entry
	case opUnlink:
		delete(names, o.name)
	case opRename:
		names[o.to] = names[o.name]
		delete(names, o.name)
	}
}

// sector is what a disk writes as a whole.
const sector = 512

// put makes a change of a file. Of a write it makes the sectors that a function chooses; nil: all.
func (o *op) put(content []byte, chosen func() bool) []byte {
	if o.kind == opTruncate {
		return resized(content, o.at)
	}
	for from := int64(0); from < int64(len(o.data)); {
		to := min((o.at+from)/sector*sector+sector-o.at, int64(len(o.data)))
		if chosen == nil || chosen() {
			if end := o.at + to; end > int64(len(content)) {
				content = resized(content, end)
			}
			copy(content[o.at+from:], o.data[from:to])
		}
		from = to
	}
	return content
}

func resized(content []byte, n int64) []byte {
	if n <= int64(len(content)) {
		return content[:n]
	}
	return append(content, make([]byte, n-int64(len(content)))...)
}

// Syncs are which of the waits for the disk of a recording are left out.
type Syncs string

// Those that can be left out.
const (
	OfFiles   Syncs = "files"
	OfFolders Syncs = "folders"
)

// Without is the recording of a process that does not wait for the disk.
func (r *Recording) Without(which Syncs) *Recording {
	c := *r
	folders := map[uint64]bool{}
	for n := range r.first.folders {
		folders[n] = true
	}
	c.ops = nil
	for _, o := range r.ops {
		if o.folder {
			folders[o.entry] = true
		}
		if o.kind != opSync || folders[o.file] != (which == OfFolders) {
			c.ops = append(c.ops, o)
		}
	}
	return &c
}

// Check loses the power after each call, in short tests after some, and calls a function that says what is wrong with
// what is left in the folder after these marks. What is left by a process that does not wait for the disk must be
// wrong, else the test shows nothing.
func (r *Recording) Check(t *testing.T, check func(marks []string) error) {
	t.Helper()
	seed := rand.Uint64()
	if err := r.check(rand.New(rand.NewPCG(seed, 1)), check); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	for _, which := range []Syncs{OfFiles, OfFolders} {
		err := r.Without(which).check(rand.New(rand.NewPCG(seed, 2)), check)
		if err == nil {
			t.Errorf("seed %d: without the syncs of %s, nothing is lost", seed, which)
		}
		t.Logf("%d calls; without the syncs of %s: %v", len(r.ops), which, err)
	}
}

func (r *Recording) check(random *rand.Rand, check func(marks []string) error) error {
	all := random.Perm(len(r.ops) + 1)
	if testing.Short() {
		all = all[:min(len(all), 60)]
	}
	for _, n := range all {
		marks, err := r.lose(n, random)
		if err == nil {
			err = check(marks)
		}
		if err != nil {
			return fmt.Errorf("after %d of %d calls, and the marks %q: %w", n, len(r.ops), marks, err)
		}
	}
	return nil
}

// lose puts into the folder what a loss of power after so many ops may leave: of what was not synced any sectors, and
// of the changes of a folder the first ones. It returns the marks until then. Each file is the one that it was, with
// the number and the birth that the file system gave it.
func (r *Recording) lose(ops int, random *rand.Rand) (marks []string, err error) {
	s := r.first.clone()
	for _, o := range r.ops[:ops] {
		if o.kind == opMark {
			marks = append(marks, o.name)
			continue
		}
		s.apply(o)
	}
	entries, err := os.ReadDir(r.folder)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(r.folder, e.Name())))
	}
	if err != nil {
		return nil, err
	}
	return marks, r.restore(r.folder, r.root, s, random)
}

// restore makes the content of a folder.
func (r *Recording) restore(path string, n uint64, s *system, random *rand.Rand) error {
	names := maps.Clone(s.folders[n].lasting)
	pending := s.folders[n].pending
	for _, o := range pending[:random.IntN(len(pending)+1)] {
		o.enter(names)
	}
	for name, entry := range names {
		at := filepath.Join(path, name)
		if s.folders[entry] != nil {
			if err := os.Mkdir(at, 0o700); err != nil {
				return err
			}
			if err := r.restore(at, entry, s, random); err != nil {
				return err
			}
			continue
		}
		if err := os.Link(r.kept(entry), at); err != nil {
			return err
		}
		if err := os.WriteFile(at, s.files[entry].lost(random), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// lost returns what the disk has of a file: of what was not synced nothing, everything, or any part.
func (f *file) lost(random *rand.Rand) []byte {
	share := random.IntN(3) // halves
	content := slices.Clone(f.lasting)
	chosen := func() bool { return random.IntN(2) < share }
	for _, o := range f.pending {
		if o.kind == opTruncate && !chosen() {
			continue
		}
		content = o.put(content, chosen)
	}
	return content
}
