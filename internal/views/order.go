package views

import (
	"slices"

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
			v.touch(w)
			return &w.watch.Watch, nil
		}
	}
	if e != nil {
		if refused := v.refuses(r.Client, 1); refused != nil {
			return nil, refused
		}
		e = v.orderOf(of, d) // it may have been removed to make room
	}
	if e == nil {
		if refused := v.refusesOrder(r.Client); refused != nil {
			return nil, refused
		}
		e = newEntry(v, v.parentOf(of), d, r)
		v.enter(e)
	}
	w := v.newWindow(e, d, r.Client)
	v.touch(w)
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
		definition: d, Window: place, of: e, client: client, account: memory.NewUnsqueezedAccount(v.memory),
		changed: map[string]uint64{}, came: map[string]uint64{}, left: map[string]uint64{},
	}
	w.watch = e.parent.of.NewRequestedView(watch.RequestedViewConfig{Account: w.account, InUse: func(bool) { v.held(e, w) }, Window: true})
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

func (w *window) inUse() bool         { return w.watch.InUse() }
func (w *window) chargedTo() string   { return w.client }
func (w *window) idleness() *idleness { return &w.idle }

// drop ends a window, and its order with the last one. A stream whose window is moved leaves one each time.
func (w *window) drop() {
	e := w.of
	others := slices.DeleteFunc(slices.Clone(*e.order.list.Load()), func(other *window) bool { return other == w })
	if len(others) == 0 {
		e.drop()
		return
	}
	e.views.uncharge(w)
	e.order.set(others)
	e.views.tell(e)
	w.watch.Close()
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
