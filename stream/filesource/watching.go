package filesource

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/watchtide/watchtide/stream"
)

// watching is one Watch call under way. Owned by it.
type watching struct {
	*Source
	sink  stream.Sink
	hints notifier

	touched touched     // since the last look
	first   time.Time   // the first hint that is not committed; zero: none
	settled *time.Timer // runs while first is set
	said    string      // what the sink was told to be wrong
}

// touched is what hints were given of.
type touched struct {
	names map[string]struct{} // of files, and of what may have become a directory or a link
	all   bool                // only a scan can tell
	renew bool                // and the hints must begin anew
}

func newWatching(s *Source, sink stream.Sink) *watching {
	w := &watching{Source: s, sink: sink, hints: newNotifier(s)}
	w.touched.names = map[string]struct{}{}
	w.settled = time.NewTimer(time.Hour)
	w.settled.Stop()
	return w
}

// begin brings the sink from resume to what the first look found.
func (w *watching) begin(resume stream.Resume) error {
	continues := resume.Epoch == w.epoch && resume.Revision == w.revision
	changes := w.fold()
	if err := w.complain(); err != nil {
		return err
	}
	if continues {
		return w.send(w.sink, changes)
	}
	return w.snapshot(w.sink)
}

// run follows the hints, until an error.
func (w *watching) run(ctx context.Context) error {
	defer w.settled.Stop()
	var rescan <-chan time.Time
	if w.config.Rescan > 0 {
		ticker := time.NewTicker(w.config.Rescan)
		defer ticker.Stop()
		rescan = ticker.C
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.hints.events():
			w.hint(e, ok)
		case <-w.hints.lost:
			w.lostHints()
		case <-w.settled.C:
			err = w.update(ctx)
		case <-rescan:
			w.touched.all, w.touched.renew = true, true
			err = w.update(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// lostHints looks at everything: more was touched than can be told.
func (w *watching) lostHints() {
	w.touched.all, w.touched.renew = true, true
	w.wait()
}

// hint takes one hint, waits for more if it matters, and says whether it does.
func (w *watching) hint(e fsnotify.Event, ok bool) bool {
	if !ok { // it broke off
		w.hints.close()
		w.lostHints()
		return true
	}
	if !w.matters(e) {
		return false
	}
	w.wait()
	return true
}

// wait puts the end of the burst off, but not for ever.
func (w *watching) wait() {
	now := time.Now()
	if w.first.IsZero() {
		w.first = now
	}
	w.settled.Reset(max(0, min(w.quiet, w.first.Add(w.longest).Sub(now))))
}

// matters notes what an event is about, and says whether anything may have
// changed.
func (w *watching) matters(e fsnotify.Event) bool {
	name, inside := w.hints.name(e)
	if !inside {
		_, leading := w.hints.leading[e.Name]
		w.touched.all = w.touched.all || leading
		return leading
	}
	if _, directory := w.hints.watched[name]; directory {
		w.touched.all = true
		// A directory that moved takes its hints along, under its old name.
		w.touched.renew = w.touched.renew || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
		return true
	}
	if w.links > 0 { // anything may be what a link leads to
		w.touched.all = true
		w.touched.names[name] = struct{}{}
		return true
	}
	if hidden(name) || !e.Has(fsnotify.Create) && formatOf(path.Base(name)) == noFormat {
		return false
	}
	w.touched.names[name] = struct{}{}
	return true
}

// update looks at what was touched, and passes on what changed. If there are new
// hints after that, the burst is not over, and what was found may be half of it.
func (w *watching) update(ctx context.Context) error {
	if err := w.look(ctx); err != nil {
		return err
	}
	if w.drain() && time.Since(w.first) < w.longest {
		return nil
	}
	w.first = time.Time{}
	if w.touched.all || len(w.touched.names) > 0 {
		w.wait()
	} else {
		w.settled.Stop()
	}
	return w.publish()
}

// drain takes the hints that came meanwhile, and says whether any of them
// matters.
func (w *watching) drain() (any bool) {
	for {
		select {
		case e, ok := <-w.hints.events():
			any = w.hint(e, ok) || any
		default:
			return any
		}
	}
}

// look reads what was touched, in the directory that is there then: one that
// takes its place in the middle is looked at as well, so that nothing is shown
// of one that is being taken away.
func (w *watching) look(ctx context.Context) error {
	// Where a link is moved from one directory to the next, the first may be
	// deleted while the way through the link is still being gone.
	const tries = 10
	for missing := 0; ; {
		settled, err := w.lookOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist) && missing < tries:
			missing++
		case err != nil:
			return w.unusable(err)
		case settled:
			w.touched = touched{names: map[string]struct{}{}}
			return nil
		}
	}
}

// lookOnce says whether the directory was the same from the beginning to the end.
func (w *watching) lookOnce(ctx context.Context) (bool, error) {
	root, same, err := w.openDir()
	if err != nil {
		return false, err
	}
	defer root.Close()
	if !same {
		w.touched.all, w.touched.renew = true, true
	}
	if err := w.lookInto(ctx, root); err != nil {
		return false, err
	}
	return w.unmoved(), nil
}

func (w *watching) lookInto(ctx context.Context, root *os.Root) error {
	if !w.touched.all {
		if err := w.lookAt(ctx, root); err != nil {
			return err
		}
	}
	if !w.touched.all { // also by lookAt
		return nil
	}
	return w.scan(ctx, root)
}

// scan looks at everything.
func (w *watching) scan(ctx context.Context, root *os.Root) error {
	if w.touched.renew {
		w.hints.renew()
	}
	s := &scan{
		ctx: ctx, root: root, limit: w.config.MaxValueBytes, tree: w.tree,
		read: w.touched.names, watch: w.hints.watch,
	}
	if err := s.all(); err != nil {
		return err
	}
	w.problems, w.links = s.problems, s.links
	if err := w.hints.problem(); err != nil {
		w.problems["."] = err
	}
	return nil
}

// lookAt looks at single files. What turns out to be something else makes a scan
// necessary.
func (w *watching) lookAt(ctx context.Context, root *os.Root) error {
	for name := range w.touched.names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			w.tree.remove(name)
		case err != nil || info.IsDir() || info.Mode()&fs.ModeSymlink != 0:
			w.touched.all = true
			return nil
		case formatOf(path.Base(name)) != noFormat:
			w.lookAtFile(root, name)
		}
	}
	return nil
}

func (w *watching) lookAtFile(root *os.Root, name string) {
	if c, gone := read(root, name, w.config.MaxValueBytes); gone {
		w.tree.remove(name)
	} else {
		w.tree.put(name, c)
	}
}

// publish sends what changed, and whether anything is wrong: a new mistake
// before, so that nobody takes the old value for the new one, and that all is
// mended after.
func (w *watching) publish() error {
	changes := w.fold()
	if err := w.complain(); err != nil {
		return err
	}
	if len(changes) > 0 {
		if err := w.send(w.sink, changes); err != nil {
			return err
		}
	}
	if w.said != "" && w.wrong() == "" {
		w.said = ""
		return w.sink.Status(stream.InSync, "")
	}
	return nil
}

// complain tells the sink what is wrong, if it does not know yet.
func (w *watching) complain() error {
	what := w.wrong()
	if what == "" || what == w.said {
		return nil
	}
	w.said = what
	return w.sink.Status(stream.Stale, what)
}

// wrong says what is wrong with the directory.
func (w *watching) wrong() string {
	all := w.tree.problems()
	maps.Copy(all, w.problems)
	return summary(all)
}
