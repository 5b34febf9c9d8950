package histories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/journal"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// kept is the journal of a node. Owned by the goroutine of its history.
type kept struct {
	// Static after construction.
	dir    string
	maxAge time.Duration

	*journal.Journal // nil: it could not be opened
	// takes is how many transactions its disk still takes; negative: any number. A process that is killed
	// leaves what a disk has that takes nothing more from some moment on.
	takes atomic.Int64
	weak  bool // the disk took few transactions when the process or a watch of it began: it may keep nothing
}

var errDisk = errors.New("the disk takes nothing more")

// newJournal returns a journal in a folder of the history.
func (w *world) newJournal(name string) (*kept, error) {
	if w.dir == "" {
		var err error
		if w.dir, err = os.MkdirTemp(inMemory(), "watchtide-histories"); err != nil {
			return nil, err
		}
	}
	k := &kept{dir: filepath.Join(w.dir, name), maxAge: oneOf(w.choices, 24*time.Hour, 5*time.Second)}
	k.takes.Store(-1)
	return k, nil
}

// inMemory returns a folder in memory, where a sync costs nothing; "", the folder of temporary files, if
// there is none.
func inMemory() string {
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return dir
	}
	return ""
}

// open begins a process.
func (k *kept) open() {
	if k != nil {
		k.weak = k.takes.Load() >= 0
		k.Journal, _ = journal.Open(journal.Config{Dir: k.dir, MaxAge: k.maxAge, BeforeCommit: k.commit})
	}
}

func (k *kept) commit() error {
	switch n := k.takes.Load(); {
	case n == 0:
		return errDisk
	case n > 0:
		k.takes.Store(n - 1)
	}
	return nil
}

// watch returns what keeps a watch; nil: nothing does.
func (k *kept) watch(name string) watch.Journal {
	if k == nil || k.Journal == nil {
		return nil
	}
	k.weak = k.weak || k.takes.Load() >= 0 || k.Stats().Failed
	return k.Watch(name, "upstream")
}

// close ends the process. The disk works again then.
func (k *kept) close() {
	if k != nil {
		k.Close()
		k.takes.Store(-1)
	}
}

// works reports whether everything is written.
func (k *kept) works() bool {
	return k != nil && k.Journal != nil && !k.Stats().Failed && k.takes.Load() < 0
}

// keeps reports whether the watch of the node will be the same after an orderly restart.
func (n *node) keeps() bool {
	return n.kept.works() && n.maxBytes == 0 && n.watch.Snapshot().Primed()
}

// remembered is what a node has of the watch, and the ids from which clients resume there by the changes alone.
type remembered struct {
	node   *node
	weak   bool
	place  string
	digest string
	ids    []stream.Position
}

// remember returns what a node has. Of the ids, those of its own run count, unless deletes grow old within
// the history: the next process forgets them at once.
func (n *node) remember() *remembered {
	state := n.watch.Snapshot()
	r := &remembered{node: n, weak: n.kept.weak, place: fmt.Sprint(state.Epoch(), " ", state.Revision()), digest: state.Record().Digest}
	for _, m := range n.world.parts[0].ids {
		if p := m.Position; n.history.MaxAge == time.Hour && p.Run != 0 && p.Run == state.Position().Run && n.resumes(p) {
			r.ids = append(r.ids, p)
		}
	}
	return r
}

// resumes reports whether a client resumes from a position by the changes alone.
func (n *node) resumes(p stream.Position) bool {
	s := n.watch.Subscribe(log.SubscribeOptions{Resume: &p})
	defer s.Close()
	var b log.Batch
	s.Next(&b)
	return s.Outcome() == log.OutcomeExact
}

// checkEnd checks that the next process knows the runs of the one before only if it has the end of the log, before
// the upstream can be reached. Otherwise it is to its readers another replica.
func (r *remembered) checkEnd() error {
	s := r.node.watch.Snapshot()
	horizon, _ := s.Horizon()
	now := r.node.remember()
	if r.weak || !s.Primed() || now.place == r.place && now.digest == r.digest {
		return nil
	}
	for _, p := range r.ids {
		if p.DeletesCompleteTo() < horizon && r.node.resumes(p) {
			return fmt.Errorf("%s resumes %s at %s, although its log ended at %s", r.node.name, p, now.place, r.place)
		}
	}
	return nil
}

// check checks that the next process has the same, before the upstream can be reached.
func (r *remembered) check() error {
	n, now := r.node, r.node.remember()
	if now.place != r.place || now.digest != r.digest {
		return fmt.Errorf("%s is at %s with %s after an orderly restart, it was at %s with %s", n.name, now.place, now.digest, r.place, r.digest)
	}
	for _, p := range r.ids {
		if !n.resumes(p) {
			return fmt.Errorf("%s does not resume %s after an orderly restart: it did before", n.name, p)
		}
	}
	return nil
}
