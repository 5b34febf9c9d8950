package views

import (
	"cmp"
	"container/list"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Config limits views. The zero value of a field is its default.
type Config struct {
	// Max is the number of views, lingering ones included; 20,000 by default.
	Max int
	// MaxPerClient is the number of views that exist because one client asked for them
	// first; a quarter of Max by default.
	MaxPerClient int
	// MaxOrdersPerClient is the number of orders among these; a tenth of MaxPerClient by default.
	MaxOrdersPerClient int
	// MaxBytes is the memory of all views; 256 MiB by default.
	MaxBytes int64
	// Linger is how long a view is kept without subscribers; 30 s by default.
	Linger time.Duration
	// MaxGroups is the number of groups of a count; 1,000 by default.
	MaxGroups int
}

func (c Config) withDefaults() Config {
	c.Max = cmp.Or(c.Max, 20_000)
	c.MaxPerClient = cmp.Or(c.MaxPerClient, max(1, c.Max/4))
	c.MaxOrdersPerClient = cmp.Or(c.MaxOrdersPerClient, max(1, c.MaxPerClient/10))
	c.MaxBytes = cmp.Or(c.MaxBytes, 256<<20)
	c.Linger = cmp.Or(c.Linger, 30*time.Second)
	c.MaxGroups = cmp.Or(c.MaxGroups, 1000)
	return c
}

// Views are the views that clients ask for, of all watches of a process. All methods may
// be called from any goroutine.
type Views struct {
	// Static after construction.
	memory   *memory.Ceiling
	builders builders // of views that feeders feed
	costly   builders // of those that are costly, for which no other view waits
	sorting  builders // of orders that are fed alone for the sake of others
	count    counters
	mostFed  int // see mostFedOfAClient

	goroutines sync.WaitGroup

	config  atomic.Pointer[Config]
	leaving atomic.Int64 // bytes of views that were removed, or are losing their state

	mu      sync.Mutex // guards the following fields
	watches map[*watch.Watch]*parent
	clients map[string]int     // number of views charged to each
	orders  map[string]int     // number of orders among them
	idlers  map[string]*idlers // the windows of each client that have no holder
	number  int
	counted map[*watch.Watch]*counted
	idle    list.List // of what has no holder, that which has had none for longest first
	timer   *time.Timer
	closed  bool
}

// kept is a view, a window or a count, which is kept for a while after its last holder. All is
// called with the mutex of Views held.
type kept interface {
	inUse() bool
	chargedTo() string
	idleness() *idleness
	drop()
}

// idleness is how long something has had no holder. Guarded by the mutex of Views.
type idleness struct {
	at    *list.Element // in the list of what has none; nil: it has a holder, or was removed
	among *list.Element // of a window: in the list of those of its client
	since time.Time
	over  bool // it was removed
}

// parent is a watch with views.
type parent struct {
	// Static after construction.
	of      *watch.Watch
	feeders [2]*feeder    // for views that an index finds, and for the others
	ended   chan struct{} // closed when there are no more views

	changed atomic.Int64 // when the watch had a new state last, in nanoseconds

	// Guarded by the mutex of Views.
	views map[string]*entry // by the ID of their definition
	fed   share             // the windows that the feeders feed
	fedOf map[string]share  // those of each client

	mu      sync.Mutex // guards the following fields
	exactOf uint64     // number of the state that exact is of
	exact   uint64
}

// exactFrom returns the revision as of which nothing is in doubt in a state. It is cached,
// since finding it takes a look at much of the log, and thousands of views are made from one
// state.
func (p *parent) exactFrom(s log.Snapshot) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exactOf != s.Number() {
		p.exactOf, p.exact = s.Number(), s.Exact()
	}
	return p.exact
}

// New returns an empty set of views. Close it.
func New(c Config) *Views {
	c = c.withDefaults()
	v := &Views{mostFed: mostFedOfAClient, memory: memory.NewCeiling(c.MaxBytes), watches: map[*watch.Watch]*parent{}, clients: map[string]int{}, orders: map[string]int{}, idlers: map[string]*idlers{}, counted: map[*watch.Watch]*counted{}}
	v.config.Store(&c)
	for _, b := range []*builders{&v.builders, &v.costly, &v.sorting} {
		b.views, b.most, b.queues = v, max(1, runtime.GOMAXPROCS(0)/2), map[string][]job{}
	}
	v.timer = time.AfterFunc(time.Hour, v.expire)
	v.timer.Stop()
	return v
}

// limits returns the current limits.
func (v *Views) limits() *Config { return v.config.Load() }

// Reconfigure changes the limits. Views that are in use stay, even if there are too many now.
// If they hold too much memory, the usual rules apply.
func (v *Views) Reconfigure(c Config) {
	c = c.withDefaults()
	v.config.Store(&c)
	v.memory.SetBytes(c.MaxBytes)
	v.relieve()
	v.expire()
}

// Request is the reason for which a view is opened.
type Request struct {
	// Client is who is charged for a view that does not exist yet.
	Client string
	// Resume is the position from which a subscriber will continue; nil: none.
	Resume *stream.Position
}

// Open returns the view of w that d selects. It has the name of w, and lives while it has
// subscribers, or callers that wait for its state, and a while after. The error is a
// *Refusal if a limit is reached.
func (v *Views) Open(w *watch.Watch, d *view.Definition, r Request) (*watch.Watch, error) {
	if d.IsWhole() {
		return w, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, is := d.Window(); is {
		return v.openWindow(w, d, r)
	}
	if p := v.watches[w]; p != nil && p.views[d.ID()] != nil {
		e := p.views[d.ID()]
		if e.full.Load() {
			return nil, &Refusal{Reason: NoMemory, Limit: int(v.limits().MaxBytes)}
		}
		e.want(r.Resume)
		v.touch(e)
		return e.watch, nil
	}
	if refused := v.refuses(r.Client, 1); refused != nil {
		return nil, refused
	}
	e := newEntry(v, v.parentOf(w), d, r)
	e.want(r.Resume)
	v.enter(e)
	v.touch(e)
	return e.watch, nil
}

// enter makes a view known.
func (v *Views) enter(e *entry) {
	e.parent.views[e.id()] = e
	v.number++
	v.clients[e.client]++
	if e.order != nil {
		v.orders[e.client]++
	}
}

// Shared returns the definition of the view that Open has returned for d. It equals d, and all
// requests for the view can share it.
func (v *Views) Shared(of *watch.Watch, d *view.Definition) *view.Definition {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.watches[of.Of()]; p != nil && p.views[d.ID()] != nil {
		return p.views[d.ID()].definition
	}
	return d // it has been removed since
}

// refuses returns why a client cannot have n more views; nil: it can. To make room for
// them, views are removed, those that have been idle for longest first.
func (v *Views) refuses(client string, n int) *Refusal {
	if v.closed {
		return &Refusal{Reason: TooMany}
	}
	for v.clients[client]+n > v.limits().MaxPerClient {
		if !v.removeIdle(func(k kept) bool { return k.chargedTo() == client }) {
			return &Refusal{Reason: TooManyOfAClient, Limit: v.limits().MaxPerClient}
		}
	}
	for v.number+n > v.limits().Max {
		if !v.removeIdle(anything) {
			return &Refusal{Reason: TooMany, Limit: v.limits().Max}
		}
	}
	if v.exceeds() && !v.removeIdle(anything) {
		return &Refusal{Reason: NoMemory, Limit: int(v.limits().MaxBytes)}
	}
	return nil
}

// refusesOrder is refuses for an order with a window.
func (v *Views) refusesOrder(client string) *Refusal {
	for v.orders[client] >= v.limits().MaxOrdersPerClient {
		unused := func(k kept) bool {
			w, is := k.(*window)
			return is && w.of.client == client && !w.of.inUse()
		}
		if !v.removeIdle(unused) {
			return &Refusal{Reason: TooManyOrders, Limit: v.limits().MaxOrdersPerClient}
		}
	}
	return v.refuses(client, 2)
}

// holds is how many bytes the views hold.
func (v *Views) holds() int64 { return v.memory.Logs() + v.memory.Superseded() }

// keeps is how many bytes they hold, except for those that are about to hold nothing.
func (v *Views) keeps() int64 { return v.holds() - v.leaving.Load() }

// exceeds reports whether the views hold too much, also after what only slow readers hold was
// taken away from them.
func (v *Views) exceeds() bool {
	for v.keeps() > v.limits().MaxBytes {
		if !v.memory.TakeOldest() {
			return true
		}
	}
	return false
}

// hasRoom reports whether there is memory for more.
func (v *Views) hasRoom() bool { return v.holds() < v.limits().MaxBytes*3/4 }

// justOpened is how long a view that was opened is kept for its first subscriber,
// whatever is short.
const justOpened = 500 * time.Millisecond

// anything is what removeIdle may remove if it makes no difference.
func anything(kept) bool { return true }

// removeIdle removes what has been idle for longest, of what may be removed. It returns false if there
// is nothing.
func (v *Views) removeIdle(may func(kept) bool) bool {
	for at := v.idle.Front(); at != nil; at = at.Next() {
		k := at.Value.(kept)
		if time.Since(k.idleness().since) < justOpened {
			return false
		}
		if !k.inUse() && may(k) {
			k.drop()
			return true
		}
	}
	return false
}

// parentOf returns a watch with its views, and begins to feed them if it has had none.
func (v *Views) parentOf(w *watch.Watch) *parent {
	if p := v.watches[w]; p != nil {
		return p
	}
	p := &parent{of: w, ended: make(chan struct{}), views: map[string]*entry{}, fedOf: map[string]share{}}
	for i := range p.feeders {
		p.feeders[i] = newFeeder(v, p, i == 0)
		v.goroutines.Go(p.feeders[i].run)
	}
	v.watches[w] = p
	return p
}

// touch records that something is held, or that it is idle from now on.
func (v *Views) touch(k kept) {
	i := k.idleness()
	v.unlist(k)
	if i.over || k.inUse() {
		return
	}
	i.since = time.Now()
	i.at = v.idle.PushBack(k)
	if v.idle.Len() == 1 {
		v.timer.Reset(v.limits().Linger)
	}
	if w, is := k.(*window); is {
		v.idles(w)
	}
}

func (v *Views) unlist(k kept) {
	i := k.idleness()
	if i.at != nil {
		v.idle.Remove(i.at)
		i.at = nil
	}
	if i.among == nil {
		return
	}
	of := v.idlers[k.chargedTo()]
	of.windows.Remove(i.among)
	if i.among = nil; of.windows.Len() == 0 && !of.due {
		delete(v.idlers, k.chargedTo())
	}
}

// idlers are the windows of a client that have no holder, that which has had none for longest first.
type idlers struct {
	windows list.List
	due     bool // some will be removed soon
}

// mostIdle is how many windows without a holder are kept for a client: each changes with its order, for others to wait for.
const mostIdle = 16

// idles records that a window has no holder.
func (v *Views) idles(w *window) {
	of := v.idlers[w.client]
	if of == nil {
		of = &idlers{}
		v.idlers[w.client] = of
	}
	w.idle.among = of.windows.PushBack(w)
	v.trim(w.client, of)
}

// trim removes the windows without a holder of which a client has too many, once they are not just opened or left.
func (v *Views) trim(client string, of *idlers) {
	for !of.due && of.windows.Len() > mostIdle {
		w := of.windows.Front().Value.(*window)
		if left := justOpened - time.Since(w.idle.since); left > 0 {
			of.due = true
			time.AfterFunc(left, func() { v.trimDue(client, of) })
			return
		}
		if w.inUse() {
			v.touch(w) // its holder is about to do that
			continue
		}
		w.drop()
	}
}

func (v *Views) trimDue(client string, of *idlers) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if of.due = false; v.closed {
		return
	}
	v.trim(client, of)
	if of.windows.Len() == 0 && !of.due {
		delete(v.idlers, client)
	}
}

// uncharge counts that there is one less, which was removed.
func (v *Views) uncharge(k kept) {
	i, client := k.idleness(), k.chargedTo()
	v.unlist(k)
	i.over = true
	v.number--
	if v.clients[client]--; v.clients[client] == 0 {
		delete(v.clients, client)
	}
}

// held is called when a view, or a window of it, gets its first holder or loses its last one. The view is
// built for its first holder: who opens one and leaves costs nothing.
func (v *Views) held(e *entry, k kept) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.touch(k)
	if !e.started && !e.removed.Load() && e.inUse() {
		e.started = true
		v.build(e)
	}
}

// build has builders make a view, or bring it closer to its watch.
func (v *Views) build(e *entry) {
	switch {
	case e.costly:
		v.costly.add(e)
	case e.alone.Load():
		v.sorting.add(e)
	default:
		v.builders.add(e)
	}
}

// wants reports whether a view that a builder is about to make still has a holder. If not,
// the view is given up until there is one: the builder does not own it any more.
func (v *Views) wants(e *entry) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !e.removed.Load() && !e.inUse() {
		e.release()
		e.started = false
	}
	return e.started
}

// expire removes what has been idle for long enough.
func (v *Views) expire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for !v.closed && v.idle.Len() > 0 {
		k := v.idle.Front().Value.(kept)
		if left := v.limits().Linger - time.Since(k.idleness().since); left > 0 {
			v.timer.Reset(left)
			return
		}
		if k.inUse() {
			v.touch(k) // its holder is about to do that
			continue
		}
		k.drop()
	}
}

func (e *entry) chargedTo() string   { return e.client }
func (e *entry) idleness() *idleness { return &e.holding.idleness }

// drop ends a view.
func (e *entry) drop() {
	v := e.views
	e.leaves()
	e.removed.Store(true)
	e.close()
	p := e.parent
	delete(p.views, e.id())
	v.uncharge(e)
	if e.order != nil {
		if v.orders[e.client]--; v.orders[e.client] == 0 {
			delete(v.orders, e.client)
		}
		for _, w := range e.order.list {
			v.uncharge(w)
			v.chargeFeeder(w, -1)
		}
	}
	if e.started {
		p.feeder(e).ask(leaves, e)
	} else {
		e.end() // nobody else has it
	}
	if len(p.views) == 0 {
		delete(v.watches, p.of)
		close(p.ended)
	}
}

// removeAll ends the views of a watch that was removed.
func (v *Views) removeAll(p *parent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range p.views {
		e.drop()
	}
}

// Close ends all views.
func (v *Views) Close() {
	v.mu.Lock()
	v.closed = true
	v.timer.Stop()
	for _, of := range v.counted {
		for _, c := range of.counts {
			c.drop()
		}
	}
	for _, p := range v.watches {
		for _, e := range p.views {
			e.drop()
		}
	}
	v.mu.Unlock()
	v.goroutines.Wait()
	v.builders.close() // the feeders begin no more
	v.costly.close()
	v.sorting.close()
}

// relieve frees memory if views hold too much: what only slow readers hold goes first, then
// idle views, then the state of the largest one of the client that is charged for the most, which is built again
// later.
func (v *Views) relieve() {
	if !v.exceeds() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.exceeds() && v.removeIdle(anything) {
	}
	if !v.exceeds() {
		return
	}
	e, c := v.largestOf(v.mostCharged())
	if c != nil {
		c.full.Store(true)
		c.of.wake()
		return
	}
	if e != nil {
		e.leaves()
		e.full.Store(true)
		if !e.started {
			e.tooLarge() // nobody else has it
			return
		}
		e.parent.feeder(e).ask(fails, e)
	}
}

// mostCharged returns the client whose views and counts hold the most, except for those that are giving up
// what they have.
func (v *Views) mostCharged() (client string) {
	held := map[string]int64{}
	for e := range v.holding() {
		held[e.client] += e.bytes()
	}
	for c := range v.countsHolding() {
		held[c.client] += c.account.Own().Logs()
	}
	for name, bytes := range held {
		if bytes > held[client] || bytes == held[client] && name < client {
			client = name
		}
	}
	return client
}

// largestOf returns what holds the most of what a client is charged for: a view or a count; nil: there is none.
func (v *Views) largestOf(client string) (largest *entry, c *count) {
	var most int64
	for e := range v.holding() {
		if bytes := e.bytes(); e.client == client && (largest == nil || bytes > most) {
			largest, most = e, bytes
		}
	}
	for of := range v.countsHolding() {
		if bytes := of.account.Own().Logs(); of.client == client && bytes > most {
			largest, c, most = nil, of, bytes
		}
	}
	return largest, c
}

// holding are the views that are not giving up their state.
func (v *Views) holding() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, p := range v.watches {
			for _, e := range p.views {
				if !e.full.Load() && !yield(e) {
					return
				}
			}
		}
	}
}
