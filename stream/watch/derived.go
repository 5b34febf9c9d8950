package watch

import (
	"github.com/watchtide/watchtide/internal/log"
)

// Derived is something that is worked out from a watch or a view of one, as a watch of its own:
// counts, for example. It has the name, the source and the upstream of that watch, and its own
// state. Subscribers count as subscribers of both.
type Derived struct {
	Watch
	// State is the writing side of its state, which belongs to one goroutine at a time.
	State *log.Derived
}

// NewDerived returns a watch that is to be derived from w, and that is not primed. Close it.
func (w *Watch) NewDerived(c RequestedViewConfig) *Derived {
	d := &Derived{Watch: Watch{root: w.root, of: w, account: c.Account, inUse: c.InUse}}
	d.State = log.NewDerived(w.log, log.Config{Watch: w.Name(), History: w.config.History, Account: c.Account, Counted: d.counted})
	d.log = d.State.Log()
	return d
}

// Close ends the watch: its subscribers see Done.
func (d *Derived) Close() {
	if d.done.Send() {
		d.log.Notified()
	}
}

// Refuse says why there is no state, or none that is true, and that waiting for one is of no use;
// nil: that is over. The freshness must be changed after it.
func (d *Derived) Refuse(why error) {
	if why == nil {
		d.refused.Store(nil)
		return
	}
	d.refused.Store(&why)
}

// Refused returns why waiting for a true state is of no use; nil: it is of use. It is not nil only
// for what is derived from another watch.
func (w *Watch) Refused() error {
	if why := w.refused.Load(); why != nil {
		return *why
	}
	return nil
}
