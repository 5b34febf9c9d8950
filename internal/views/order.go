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
		if refused := v.refusesWindow(e, d, r.Client); refused != nil {
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
	e.order.open(w)
	v.chargeFeeder(w, 1)
	v.relieveFeeder(e.parent, client)
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

// share is what a client has of the windows of an order, or of those that the feeders of a watch feed.
type share struct{ windows, rows int }

func (s share) add(w *window, n int) share { return share{s.windows + n, s.rows + n*w.Limit} }

// windowCosts is how many rows make as much work as what a window makes besides its rows.
const windowCosts = 100

// work is how much work it makes if all of the windows change.
func (s share) work() int { return s.rows + windowCosts*s.windows }

// mostFedOfAClient is how much work the windows of a client that feeders feed may make: some milliseconds, if a change concerns
// all. Beyond that builders feed orders alone. Those of all clients together may make so many times as much.
const (
	mostFedOfAClient = 20_000
	mostFedFactor    = 4
)

// chargeFeeder counts n more windows like w, fewer if negative, as fed by a feeder, if it feeds the order.
func (v *Views) chargeFeeder(w *window, n int) {
	p := w.of.parent
	if w.of.alone.Load() {
		return
	}
	p.fed = p.fed.add(w, n)
	if p.fedOf[w.client] = p.fedOf[w.client].add(w, n); p.fedOf[w.client].windows == 0 {
		delete(p.fedOf, w.client)
	}
}

// relieveFeeder has builders feed orders alone whose windows would make too much work for the feeders of a watch, and delay other
// views: those first in which the client, which has just opened one, or all together have the most.
func (v *Views) relieveFeeder(p *parent, client string) {
	for p.fedOf[client].work() > v.mostFed {
		v.feedAlone(p, func(t *sorted) int { return t.shares[client].work() })
	}
	for p.fed.work() > v.mostFed*mostFedFactor {
		v.feedAlone(p, func(t *sorted) (all int) {
			for _, s := range t.shares {
				all += s.work()
			}
			return all
		})
	}
}

// feedAlone has builders feed the order with the most work, of those that the feeders feed.
func (v *Views) feedAlone(p *parent, work func(*sorted) int) {
	var largest *entry
	most := 0
	for _, e := range p.views {
		if e.order == nil || e.alone.Load() {
			continue
		}
		if n := work(e.order); n > most {
			largest, most = e, n
		}
	}
	for _, w := range largest.order.list {
		v.chargeFeeder(w, -1)
	}
	largest.alone.Store(true)
	v.tell(largest)
}

// mostOfAnOrder is how many windows of one order a client may have, and how many rows these together.
func (c *Config) mostOfAnOrder() share {
	n := max(16, c.MaxPerClient/10)
	return share{n, max(2000, 50*n)}
}

// refusesWindow is refuses for a window of an order that is there.
func (v *Views) refusesWindow(e *entry, d *view.Definition, client string) *Refusal {
	place, _ := d.Window()
	most := v.limits().mostOfAnOrder()
	for !e.removed.Load() {
		has := e.order.shares[client]
		if has.windows < most.windows && has.rows+place.Limit <= most.rows {
			break
		}
		unused := func(k kept) bool {
			w, is := k.(*window)
			return is && w.of == e && w.client == client
		}
		if !v.removeIdle(unused) {
			return &Refusal{Reason: TooManyWindows, Limit: most.windows}
		}
	}
	return v.refuses(client, 1)
}

// find returns the window with an ID; nil: there is none.
func (t *sorted) find(id string) *window { return t.byID[id] }

// open adds a window.
func (t *sorted) open(w *window) {
	w.at = len(t.list)
	t.list = append(t.list, w)
	t.byID[w.definition.ID()] = w
	t.shares[w.client] = t.shares[w.client].add(w, 1)
	t.mu.Lock()
	t.opened = append(t.opened, w)
	t.mu.Unlock()
}

// shut removes a window.
func (t *sorted) shut(w *window) {
	last := t.list[len(t.list)-1]
	t.list[w.at], last.at = last, w.at
	t.list[len(t.list)-1] = nil
	t.list = t.list[:len(t.list)-1]
	delete(t.byID, w.definition.ID())
	if t.shares[w.client] = t.shares[w.client].add(w, -1); t.shares[w.client].windows == 0 {
		delete(t.shares, w.client)
	}
	t.mu.Lock()
	t.closed = append(t.closed, w)
	t.mu.Unlock()
}

// inUse reports whether somebody uses a window of the order.
func (t *sorted) inUse() bool {
	return slices.ContainsFunc(t.list, func(w *window) bool { return w.watch.InUse() })
}

// close tells the readers of all windows that the order was removed.
func (t *sorted) close() {
	for _, w := range t.list {
		w.watch.Close()
	}
}

// bytes is how many bytes the windows hold.
func (t *sorted) bytes() (n int64) {
	for _, w := range t.list {
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
	if len(e.order.list) == 1 {
		e.drop()
		return
	}
	e.views.uncharge(w)
	e.views.chargeFeeder(w, -1)
	e.order.shut(w)
	e.views.tell(e)
	w.watch.Close()
}

// listWindows returns the windows of an order. The memory of the order is that of the first one.
func (e *entry) listWindows(of string) (out []Listed) {
	bytes := e.account.Own().Logs()
	for _, w := range e.order.list {
		bytes += w.account.Own().Logs() + w.account.Own().Superseded()
		out = append(out, Listed{
			Watch: of, Definition: w.definition, Resources: w.watch.Snapshot().Count(), Bytes: bytes, Subscribers: w.watch.Subscribers(),
		})
		bytes = 0
	}
	return out
}
