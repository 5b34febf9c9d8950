package watch

import (
	"context"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
)

// RequestedViewConfig declares a view of a watch that clients request.
type RequestedViewConfig struct {
	// Account counts what the view holds.
	Account *memory.Account
	// InUse is called by any goroutine when the first subscriber of the view, or the first
	// caller that waits for its state, arrives, and when the last one leaves.
	InUse func(bool)
	// Window makes it the log of a window.
	Window bool
}

// RequestedView is a view of a watch, as a watch of its own: it has the name, the source and the
// upstream of the watch that it is a view of, and its own state. Subscribers of the view
// count as subscribers of both.
type RequestedView struct {
	Watch
	// State is the writing side of its state, which belongs to one goroutine at a time.
	State *log.View
}

// NewRequestedView returns a view of w that is not primed. Close it.
func (w *Watch) NewRequestedView(c RequestedViewConfig) *RequestedView {
	p := &RequestedView{Watch: Watch{root: w.root, of: w, account: c.Account, inUse: c.InUse}}
	of := log.Config{Watch: w.Name(), History: w.config.History, Account: c.Account, Counted: p.counted}
	if c.Window {
		p.State = log.NewWindow(of)
	} else {
		p.State = log.NewView(w.log, of)
	}
	p.log = p.State.Log()
	return p
}

// Close ends the view: its subscribers see Done.
func (p *RequestedView) Close() {
	if p.done.Send() {
		p.log.Notified()
	}
}

// Notify has f called when there is something new in the view, and when it ends, until
// stop is called. It returns false for a watch that is no such view, whose readers wait for
// Changed and Done. f is called by any goroutine, and must return at once.
func (w *Watch) Notify(f func()) (stop func(), is bool) {
	if w.of == nil {
		return nil, false
	}
	return w.log.Notify(f), true
}

// catchUpWait is how long Prime waits for a view to have what its watch has.
const catchUpWait = time.Second

// catchUp waits for a view to have what its watch has already, so that who has written to
// the watch finds it in the view. A part that lags for long is read as it is.
func (w *Watch) catchUp(ctx context.Context) {
	if w.of == nil {
		return
	}
	w.of.catchUp(ctx)
	s := w.of.Snapshot()
	reached, changed := w.log.Reached(s)
	if reached || !s.Primed() {
		return
	}
	enough := time.NewTimer(catchUpWait)
	defer enough.Stop()
	for ; !reached && w.Refused() == nil; reached, changed = w.log.Reached(s) {
		select {
		case <-changed:
		case <-enough.C:
			return
		case <-w.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// Of returns the watch that this one is a view of; nil if it is none.
func (w *Watch) Of() *Watch { return w.of }
