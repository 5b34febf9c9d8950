package files

import (
	"context"
	"maps"
	"path"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// watching is one running Watch call. Owned by it.
type watching struct {
	*Source
	sink  stream.Sink
	hints notifier

	touched touched     // since the last look
	first   time.Time   // the first hint that is not committed; zero: none
	settled *time.Timer // runs while first is set
	said    string      // the problem that was last reported to the sink
}

// touched collects the names in hints.
type touched struct {
	names map[string]struct{} // of files, and of possible new directories or links
	all   bool                // only a scan can find the changes
	renew bool                // and the hints must start over
}

func newWatching(s *Source, sink stream.Sink) *watching {
	w := &watching{Source: s, sink: sink, hints: newNotifier(s)}
	w.touched.names = map[string]struct{}{}
	w.settled = time.NewTimer(time.Hour)
	w.settled.Stop()
	return w
}

// begin brings the sink from resume to the state at the first scan.
func (w *watching) begin(resume stream.Resume) error {
	continues := resume.Epoch == w.epoch && resume.Revision == w.revision
	changes, made := w.fold()
	if err := w.complain(); err != nil {
		return err
	}
	if !continues {
		return w.snapshot(w.sink)
	}
	if err := w.send(changes, made); err != nil || w.said != "" {
		return err
	}
	return w.sink.Status(stream.InSync, "")
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

// lostHints scans everything: more was touched than the hints name.
func (w *watching) lostHints() {
	w.touched.all, w.touched.renew = true, true
	w.wait()
}

// hint takes one hint, waits for more if it is relevant, and reports whether it
// is.
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

// wait postpones the end of the burst, but not forever.
func (w *watching) wait() {
	now := time.Now()
	if w.first.IsZero() {
		w.first = now
	}
	w.settled.Reset(max(0, min(w.quiet, w.first.Add(w.longest).Sub(now))))
}

// matters records the name in an event, and reports whether anything may have
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
		// A directory that moved keeps its hints, under its old name.
		w.touched.renew = w.touched.renew || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
		return true
	}
	if w.links > 0 { // anything may be the target of a link
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

// update reads the touched names, and passes on the changes. If there are new
// hints after that, the burst is not over, and the changes may be half of it.
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

// drain takes the pending hints, and reports whether any of them is relevant.
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

// publish sends the changes and the status: a new problem before the changes,
// so that the old value is not mistaken for the new one, and the end of
// problems after them.
func (w *watching) publish() error {
	changes, made := w.fold()
	if err := w.complain(); err != nil {
		return err
	}
	if len(changes) > 0 {
		if err := w.send(changes, made); err != nil {
			return err
		}
	}
	if w.said != "" && w.wrong() == "" {
		w.said = ""
		return w.sink.Status(stream.InSync, "")
	}
	return nil
}

// send sends changes of files, the first of which was written at a time that may not be known.
func (w *watching) send(changes []adapter.PolledChange, made time.Time) error {
	if !made.IsZero() {
		w.sink.SetTimestamp(made)
	}
	return adapter.SendPolled(w.sink, changes, w.revision)
}

// complain reports problems to the sink, if they are new.
func (w *watching) complain() error {
	what := w.wrong()
	if what == "" || what == w.said {
		return nil
	}
	w.said = what
	return w.sink.Status(stream.Stale, what)
}

// wrong describes the problems of the directory.
func (w *watching) wrong() string {
	all := w.tree.problems()
	maps.Copy(all, w.problems)
	return summary(all)
}
