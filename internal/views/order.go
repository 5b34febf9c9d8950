package views

import (
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream/watch"
)

// openWindow is Open for a window. The order counts as a view, and so does each of its windows.
func (v *Views) openWindow(of *watch.Watch, d *view.Definition, r Request) (*watch.Watch, error) {
	e := v.orderOf(of, d)
	if e != nil && e.full.Load() {
		return nil, &Refusal{Reason: NoMemory, Limit: int(v.limits().MaxBytes)}
	}
	if e != nil {
		if w := e.order.find(d.ID()); w != nil {
			v.touch(e)
			return &w.watch.Watch, nil
		}
	}
	if refused := v.refuses(r.Client); refused != nil {
		return nil, refused
	}
	if e = v.orderOf(of, d); e == nil { // it may have been removed to make room
		e = newEntry(v, v.parentOf(of), d, r)
		v.enter(e)
	}
	w := v.newWindow(e, d, r.Client)
	v.touch(e)
	return &w.watch.Watch, nil
}

// orderOf returns the order of the windows that d is one of; nil: there is none.
func (v *Views) orderOf(of *watch.Watch, d *view.Definition) *entry {
	if p := v.watches[of]; p != nil {
		return p.views[d.OrderID()]
	}
	return nil
}

// newWindow opens a window of an order.
func (v *Views) newWindow(e *entry, d *view.Definition, client string) *window {
	place, _ := d.Window()
	w := &window{
		definition: d, Window: place, client: client, idleSince: time.Now(), account: memory.NewUnsqueezedAccount(v.memory),
		changed: map[string]uint64{}, came: map[string]uint64{}, left: map[string]uint64{},
	}
	w.watch = e.parent.of.NewRequestedView(watch.RequestedViewConfig{Account: w.account, InUse: func(bool) { v.held(e) }, Window: true})
	w.state = w.watch.State
	w.state.Beside(d.Bytes())
	w.state.SetStatus(e.watch.Status())
	v.number++
	v.clients[client]++
	e.order.set(append(slices.Clone(*e.order.list.Load()), w))
	v.tell(e)
	return w
}

// tell has whoever has an order look at its list of windows.
func (v *Views) tell(e *entry) {
	if e.started {
		e.parent.feeder(e).ask(windows, e)
		return
	}
	e.order.adopt() // nobody else has it
}

// find returns the window with an ID; nil: there is none.
func (t *sorted) find(id string) *window {
	for _, w := range *t.list.Load() {
		if w.definition.ID() == id {
			return w
		}
	}
	return nil
}

func (t *sorted) set(list []*window) { t.list.Store(&list) }

// inUse reports whether somebody uses a window of the order.
func (t *sorted) inUse() bool {
	return slices.ContainsFunc(*t.list.Load(), func(w *window) bool { return w.watch.InUse() })
}

// close tells the readers of all windows that the order was removed.
func (t *sorted) close() {
	for _, w := range *t.list.Load() {
		w.watch.Close()
	}
}

// bytes is how many bytes the windows hold.
func (t *sorted) bytes() (n int64) {
	for _, w := range *t.list.Load() {
		n += w.account.Own().Logs() + w.account.Own().Superseded()
	}
	return n
}

// sweep removes the windows of an order in use that nobody has used for a while. It returns how long
// the next one is kept; 0: all are in use.
func (v *Views) sweep(e *entry) (next time.Duration) {
	var kept []*window
	list := *e.order.list.Load()
	for _, w := range list {
		switch now := time.Now(); {
		case w.watch.InUse():
			w.idleSince = time.Time{}
		case w.idleSince.IsZero():
			w.idleSince = now
			next = v.limits().Linger
		case now.Sub(w.idleSince) >= v.limits().Linger:
			v.closeWindow(w)
			continue
		default:
			left := v.limits().Linger - now.Sub(w.idleSince)
			if next = min(next, left); next == 0 {
				next = left
			}
		}
		kept = append(kept, w)
	}
	if len(kept) < len(list) {
		e.order.set(kept)
		v.tell(e)
	}
	return next
}

// closeWindow ends a window that was removed from its order.
func (v *Views) closeWindow(w *window) {
	v.uncharge(w.client)
	w.watch.Close()
}

// removeIdleWindow removes the window that has been idle for longest, of those of a client in orders that are in
// use, or of all if the client is empty. It returns false if there is none. A stream whose window is moved leaves
// one each time.
func (v *Views) removeIdleWindow(client string) bool {
	var of *entry
	var oldest *window
	for _, p := range v.watches {
		for _, e := range p.views {
			if e.order == nil || !e.inUse() {
				continue
			}
			for _, w := range *e.order.list.Load() {
				idle := !w.watch.InUse() && !w.idleSince.IsZero() && (client == "" || w.client == client)
				if idle && (oldest == nil || w.idleSince.Before(oldest.idleSince)) {
					of, oldest = e, w
				}
			}
		}
	}
	if oldest == nil || time.Since(oldest.idleSince) < justOpened {
		return false
	}
	of.order.set(slices.DeleteFunc(slices.Clone(*of.order.list.Load()), func(w *window) bool { return w == oldest }))
	v.tell(of)
	v.closeWindow(oldest)
	return true
}

// sweepAll sweeps the orders that are in use.
func (v *Views) sweepAll() (next time.Duration) {
	for _, p := range v.watches {
		for _, e := range p.views {
			if e.order == nil || !e.inUse() {
				continue
			}
			left := v.sweep(e)
			if next = min(next, left); next == 0 {
				next = left
			}
		}
	}
	return next
}

// uncharge counts that a client has a view less.
func (v *Views) uncharge(client string) {
	v.number--
	if v.clients[client]--; v.clients[client] == 0 {
		delete(v.clients, client)
	}
}

// listWindows returns the windows of an order. The memory of the order is that of the first one.
func (e *entry) listWindows(of string) (out []Listed) {
	bytes := e.account.Own().Logs()
	for _, w := range *e.order.list.Load() {
		bytes += w.account.Own().Logs() + w.account.Own().Superseded()
		out = append(out, Listed{
			Watch: of, Definition: w.definition, Resources: w.watch.Snapshot().Count(), Bytes: bytes, Subscribers: w.watch.Subscribers(),
		})
		bytes = 0
	}
	return out
}
