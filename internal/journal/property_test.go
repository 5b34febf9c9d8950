package journal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/watchtide/watchtide/internal/disk/disktest"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
	"pgregory.net/rapid"
)

// reader is a client that applies events as they come, and may be cut off in the middle of them.
type reader struct {
	state    map[string]string
	covered  map[string]string // the state at its position
	position *stream.Position
	sub      *log.Subscription // nil: it is not connected
}

func (r *reader) connect(l *log.Log) {
	r.sub = l.Subscribe(log.SubscribeOptions{Resume: r.position})
}

// read applies batches, of the last one only some events.
func (r *reader) read(t *rapid.T, cut bool) {
	var b log.Batch
	for r.sub.Next(&b) {
		n := 1 << 30
		if cut && rapid.IntRange(0, 2).Draw(t, "cut") == 0 {
			n = rapid.IntRange(0, 3).Draw(t, "events")
		}
		for e := range b.Events() {
			if n--; n < 0 {
				r.disconnect()
				return
			}
			r.apply(e)
		}
		if p, ok := r.sub.Position(); ok && b.Boundary() {
			r.position, r.covered = &p, maps.Clone(r.state)
		}
	}
}

func (r *reader) apply(e stream.Event) {
	switch e.Type {
	case stream.Reset:
		r.state, r.position, r.covered = map[string]string{}, nil, map[string]string{}
	case stream.Upsert:
		r.state[e.Resource.Key] = string(e.Resource.Value)
	case stream.Delete:
		delete(r.state, e.Resource.Key)
	}
}

func (r *reader) disconnect() {
	if r.sub != nil {
		r.sub.Close()
		r.sub = nil
	}
}

// world is an upstream, a log that follows it in one process after another, and readers.
type world struct {
	dir        string
	epoch      string
	unnumbered bool
	revision   uint64
	truth      map[string]stream.Resource
	readers    []*reader

	journal *Journal
	watch   *Watch
	log     *log.Writer
	pending []log.Change
	all     []transactionOf              // of the upstream
	states  map[string]map[string]string // that were committed, by digest and revision
	newest  string                       // of states

	logged *bytes.Buffer
	opened bool // the file was there, and what is beside it, before the power was lost

	mu   sync.Mutex // guards the following field
	disk []image    // of the process, before each transaction
}

// transactionOf is one of the upstream.
type transactionOf struct {
	revision uint64
	changes  []log.Change
}

// image is what is on the disk.
type image struct{ file, beside []byte }

func (w *world) path() string { return filepath.Join(w.dir, FileName) }

// see returns what is on the disk now.
func (w *world) see() (i image) {
	i.file, _ = os.ReadFile(w.path())
	i.beside, _ = os.ReadFile(w.path() + ".state")
	return i
}

// note keeps what is on the disk before a transaction.
func (w *world) note() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disk = append(w.disk, w.see())
	return nil
}

// transactions returns how many the process has begun.
func (w *world) transactions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.disk)
}

// opened returns what is beside the file about the process that opened it: it is synced, what follows is not.
func (i image) opened() string {
	of, _, _ := strings.Cut(string(i.beside), " sequence=")
	return of
}

// lose is a loss of power during the n-th transaction of a process, which has ended.
func (w *world) lose(t *rapid.T, n int) {
	images := append(w.disk, w.see())
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	lost := disktest.Lose(images[n].file, images[n+1].file, random, rapid.SampledFrom([]disktest.Phase{disktest.Data, disktest.Meta}).Draw(t, "phase"))
	first := slices.IndexFunc(images, func(i image) bool { return i.opened() == images[n].opened() })
	beside := images[rapid.IntRange(first, n).Draw(t, "beside")].beside
	image{lost, beside}.put(t, w.path())
}

// put makes an image what is on the disk, in the same files: others would be a copy.
func (i image) put(t interface{ Fatal(...any) }, path string) {
	if err := errors.Join(os.WriteFile(path, i.file, 0o600), os.WriteFile(path+".state", i.beside, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// change changes the upstream.
func (w *world) change(t *rapid.T) {
	w.revision++
	before := len(w.pending)
	defer func() { w.all = append(w.all, transactionOf{w.revision, slices.Clone(w.pending[before:])}) }()
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		key := fmt.Sprint("k", rapid.IntRange(0, 12).Draw(t, "key"))
		_, there := w.truth[key]
		if there && rapid.Bool().Draw(t, "delete") {
			c := log.Change{Resource: stream.Resource{Key: key, Revision: w.revision}, Deleted: true}
			if w.unnumbered {
				c.Revision = 0
			}
			w.pending = append(w.pending, c)
			delete(w.truth, key)
			continue
		}
		r := stream.Resource{Key: key, Revision: w.revision, Value: fmt.Appendf(nil, `{"v":%d}`, w.revision)}
		w.truth[key] = r
		w.pending = append(w.pending, log.Change{Resource: r})
	}
}

func (w *world) commit(t *rapid.T) {
	if _, err := w.log.Commit(w.pending, w.revision); err != nil {
		t.Fatal(err)
	}
	w.pending = nil
	w.committed()
}

func (w *world) committed() {
	s := w.log.Snapshot()
	w.newest = s.Record().Digest + fmt.Sprint(s.Revision())
	w.states[w.newest] = stateOf(s)
}

// connect brings the log to where the upstream is.
func (w *world) connect(t *rapid.T) {
	if !w.log.Snapshot().Primed() || rapid.IntRange(0, 2).Draw(t, "forgotten") == 0 {
		w.resync(t)
		return
	}
	w.pending = nil
	w.log.Overlap()
	after := w.log.Snapshot().Revision()
	for _, of := range w.all {
		if of.revision <= after {
			continue
		}
		if _, err := w.log.Commit(of.changes, of.revision); err != nil {
			t.Fatal(err)
		}
		w.committed()
		if r := rapid.SampledFrom(w.readers).Draw(t, "reader"); r.sub != nil {
			r.read(t, false)
		}
	}
}

func (w *world) resync(t *rapid.T) {
	var all []stream.Resource
	for _, r := range w.truth {
		all = append(all, r)
	}
	if _, err := w.log.Replace(w.epoch, all, w.revision); err != nil {
		t.Fatal(err)
	}
	w.pending = nil
	w.committed()
}

func (w *world) start(t *rapid.T) {
	var err error
	w.disk, w.logged = nil, &bytes.Buffer{}
	if w.journal, err = Open(Config{Dir: w.dir, Logger: slog.New(slog.NewTextHandler(w.logged, nil)), BeforeCommit: w.note}); err != nil {
		t.Fatal(err)
	}
	if w.opened && strings.Contains(w.logged.String(), "set aside") {
		t.Fatalf("the file is not trusted: %s", w.logged)
	}
	w.watch = w.journal.Watch("w", "source")
	w.log = log.NewWriter(log.Config{Watch: "w", GoesOn: true, History: log.Retention{MaxDeletes: 5}})
	kept := w.watch.Begin(w.log.Log)
	if rapid.IntRange(0, 9).Draw(t, "power") == 0 {
		w.journal.kill()
		w.lose(t, rapid.IntRange(0, w.transactions()-1).Draw(t, "transaction"))
		w.start(t)
		return
	}
	w.opened = true
	if kept == watch.KeptNothing {
		return
	}
	if err := w.watch.Recall(func(r log.Record, all log.RecordedEntries) error {
		if kept == watch.KeptLost {
			r.Lost()
		}
		return w.log.Recall(r, all)
	}); err != nil {
		t.Fatal(err)
	}
	s := w.log.Snapshot()
	if want, ok := w.states[s.Record().Digest+fmt.Sprint(s.Revision())]; !ok || !maps.Equal(stateOf(s), want) {
		t.Fatalf("at %d the log has %v, which was never committed", s.Revision(), stateOf(s))
	}
	if at := s.Record().Digest + fmt.Sprint(s.Revision()); kept == watch.KeptWhole && at != w.newest {
		t.Fatalf("the end of the log is said to be %s, it is %s", at, w.newest)
	}
	if rapid.Bool().Draw(t, "early readers") {
		for _, r := range w.readers {
			r.connect(w.log.Log)
			r.read(t, true)
		}
	}
}

// end ends the process. One that is killed writes nothing more, and if the power is lost, the last write is
// cut.
func (w *world) end(t *rapid.T, killed bool) {
	lost := rapid.IntRange(0, 2).Draw(t, "power") == 0
	if killed && lost {
		w.change(t)
		w.commit(t)
	}
	last := w.transactions()
	defer func() {
		if n := w.transactions() - last; lost && n > 0 {
			w.lose(t, last+rapid.IntRange(0, n-1).Draw(t, "transaction"))
		}
	}()
	if killed && lost {
		w.journal.flush()
	}
	if killed && rapid.Bool().Draw(t, "ahead of the file") { // what readers have then is nowhere else
		for range 2 {
			w.change(t)
		}
		w.commit(t)
		for _, r := range w.readers {
			if r.sub != nil {
				r.read(t, true)
			}
		}
	}
	for _, r := range w.readers {
		r.disconnect()
		if killed { // it applies what has a position: of the rest, a replica that is behind knows nothing
			r.state = maps.Clone(r.covered)
		}
	}
	if killed {
		w.journal.kill()
		return
	}
	w.watch.End()
	w.journal.Close()
}

// kill closes the file as it is.
func (j *Journal) kill() {
	close(j.stop)
	<-j.ended
	_ = j.file.Close()
}

// check compares what readers have once they are up to date.
func (w *world) check(t *rapid.T) {
	for i, r := range w.readers {
		if r.sub == nil {
			r.connect(w.log.Log)
		}
		r.read(t, false)
		want := map[string]string{}
		for key, one := range w.truth {
			want[key] = string(one.Value)
		}
		if !maps.Equal(r.state, want) {
			t.Fatalf("reader %d at %v has %v, want %v (%s)", i, r.position, r.state, want, r.sub.Outcome())
		}
	}
}

// TestHistories: whatever happens to processes, a reader never has anything but what the upstream has, once
// the log has confirmed it and the reader has read it.
func TestHistories(t *testing.T) {
	small := TransactionBytes
	defer func() { TransactionBytes = small }()
	rapid.Check(t, func(t *rapid.T) {
		TransactionBytes = rapid.SampledFrom([]int{300, 1 << 20}).Draw(t, "transaction")
		w := &world{dir: tempDir(t), truth: map[string]stream.Resource{}, states: map[string]map[string]string{}, epoch: "e", revision: 1}
		if w.unnumbered = rapid.Bool().Draw(t, "unnumbered"); w.unnumbered {
			w.epoch = "_e"
		}
		for range 3 {
			w.readers = append(w.readers, &reader{state: map[string]string{}, covered: map[string]string{}})
		}
		for range rapid.IntRange(2, 4).Draw(t, "processes") {
			w.start(t)
			for range rapid.IntRange(0, 8).Draw(t, "missed") {
				w.change(t)
			}
			w.connect(t)
			for range rapid.IntRange(0, 25).Draw(t, "steps") {
				w.step(t)
			}
			w.commit(t)
			if rapid.Bool().Draw(t, "checked") {
				w.check(t)
			}
			w.end(t, rapid.Bool().Draw(t, "killed"))
		}
		w.start(t)
		w.connect(t)
		w.check(t)
		w.end(t, false)
	})
}

func (w *world) step(t *rapid.T) {
	r := rapid.SampledFrom(w.readers).Draw(t, "reader")
	switch rapid.IntRange(0, 6).Draw(t, "step") {
	case 0, 1:
		w.change(t)
		w.commit(t)
	case 2:
		w.change(t)
		w.change(t)
		w.resync(t)
	case 3:
		w.journal.flush()
	case 4:
		r.disconnect()
	default:
		if r.sub == nil {
			r.connect(w.log.Log)
		}
		r.read(t, true)
	}
}
