package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// Source follows the files of one directory. It is a stream.Source.
//
// Watch may be called again after it returned, from any goroutine, but never
// twice at once.
type Source struct {
	// Static after construction.
	config  Config
	quiet   time.Duration // without a hint, after which a burst counts as over
	longest time.Duration // from the first hint to the commit, however long the burst lasts
	open    func() (*fsnotify.Watcher, error)

	// Owned by Watch.
	epoch    string
	tree     *tree
	served   map[string]version // the sent values, by key
	revision uint64             // the newest sent revision
	problems map[string]error   // of directories and links, as of the last scan
	links    int                // symbolic links, as of the last scan
	identity fs.FileInfo        // of the directory, as of the last look
}

var (
	_ stream.Source     = (*Source)(nil)
	_ stream.Continuing = (*Source)(nil)
)

// version is a value and its revision.
type version struct {
	value    []byte
	revision uint64
}

// New returns a source, or a *stream.InvalidError. Whether the directory exists
// is checked by Watch.
func New(c Config) (*Source, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Source{
		config:   c,
		epoch:    adapter.NewEpoch(),
		quiet:    50 * time.Millisecond,
		longest:  time.Second,
		open:     openHints,
		tree:     newTree(c.MaxBytes),
		served:   map[string]version{},
		revision: 1,
	}, nil
}

// Watch follows the directory until ctx ends, the directory cannot be read as a
// whole, or the sink returns an error, and returns that error. If resume is the
// last position, it continues with the differences; else with a snapshot, in
// which unchanged resources keep their revision.
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	w := newWatching(s, sink)
	defer w.hints.close()
	w.touched.all, w.touched.renew = true, true
	if err := w.look(ctx); err != nil {
		return err
	}
	if err := w.begin(resume); err != nil {
		return err
	}
	return w.run(ctx)
}

// Continue implements stream.Continuing: the next scan is compared with the resources.
func (s *Source) Continue(from stream.Resume, resources iter.Seq[stream.Resource]) {
	s.epoch, s.revision = from.Epoch, from.Revision
	for r := range resources {
		s.served[r.Key] = version{bytes.Clone(r.Value), r.Revision}
		s.tree.changed[r.Key] = 0 // it may be gone, which the tree does not know
	}
}

// openDir opens the directory, and reports whether it is the same as before.
func (s *Source) openDir() (root *os.Root, same bool, err error) {
	root, err = os.OpenRoot(s.config.Dir)
	if err != nil {
		return nil, false, err
	}
	info, err := root.Stat(".")
	if err != nil {
		root.Close()
		return nil, false, err
	}
	same = s.identity != nil && os.SameFile(s.identity, info)
	s.identity = info
	return root, same, nil
}

// unmoved reports whether the directory is still the one that was opened last.
func (s *Source) unmoved() bool {
	info, err := os.Stat(s.config.Dir)
	return err == nil && os.SameFile(info, s.identity)
}

// unusable returns why the directory as a whole cannot be read.
func (s *Source) unusable(err error) error {
	info, statErr := os.Stat(s.config.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no directory %s", s.config.Dir)
	case statErr == nil && !info.IsDir():
		return fmt.Errorf("%s is not a directory", s.config.Dir)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this process may not read the directory %s", s.config.Dir)
	}
	return fmt.Errorf("the directory %s cannot be read: %w", s.config.Dir, cause(err))
}

// fold serves the changed values of the tree, at the next revision if there are
// any. made is when the first of their files was written; zero: it is not known.
func (s *Source) fold() (changes []adapter.PolledChange, made time.Time) {
	for _, key := range slices.Sorted(maps.Keys(s.tree.changed)) {
		value, old := s.tree.served(key), s.served[key].value
		if !bytes.Equal(value, old) {
			changes = append(changes, adapter.PolledChange{Key: key, Value: value})
			if at := s.tree.changed[key]; at != 0 && (made.IsZero() || at < made.UnixNano()) {
				made = time.Unix(0, at)
			}
		}
	}
	clear(s.tree.changed)
	if len(changes) > 0 {
		s.revision++
	}
	for _, c := range changes {
		if c.Value == nil {
			delete(s.served, c.Key)
			continue
		}
		s.served[c.Key] = version{c.Value, s.revision}
	}
	return changes, made
}

// snapshot sends everything, in the order of the keys.
func (s *Source) snapshot(sink stream.Sink) error {
	if err := sink.Reset(s.epoch); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(s.served)) {
		v := s.served[key]
		err := sink.Upsert(stream.Resource{Key: key, Revision: v.revision, Value: v.value})
		if err != nil {
			return err
		}
	}
	return sink.Commit(s.revision)
}
