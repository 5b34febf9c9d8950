package views

import (
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/log"
)

// feeder feeds those views of a watch that are up to date: one goroutine for all of them.
type feeder struct {
	// Static after construction.
	parent *parent
	woken  chan struct{} // there may be messages, or room

	fed log.Fed // shared with the logs of the views

	mu      sync.Mutex // guards the following fields
	mailbox []message
	ended   bool

	// Owned by the goroutine.
	bundle
	begun     bool                // the views have a state
	suspended map[*entry]struct{} // those fed alone, and those without a state, until the next state
	again     <-chan time.Time    // when to look whether there is room for views; nil: all have some
	early     []*batch            // that are ahead of the feeder
	declared  map[*entry]struct{} // of the members, those that are declared: each state makes one of theirs
}

// message is what is to be done with a view, or with a batch.
type message struct {
	kind  messageKind
	of    *entry
	batch *batch
}

type messageKind uint8

const (
	joins    messageKind = iota // a batch is up to date, or nearly
	suspends                    // a view waits for the next state
	leaves                      // it was removed
	fails                       // it has no room
	windows                     // some of it were opened or closed
)

func newFeeder(v *Views, p *parent, indexed bool) *feeder {
	return &feeder{
		bundle: newBundle(v, indexed), parent: p, woken: make(chan struct{}, 1),
		suspended: map[*entry]struct{}{}, declared: map[*entry]struct{}{},
	}
}

// ask asks for something to be done with a view. It may be called from any goroutine.
func (f *feeder) ask(kind messageKind, e *entry) { f.send(message{kind: kind, of: e}) }

// handOver hands a batch over.
func (f *feeder) handOver(b *batch) { f.send(message{kind: joins, batch: b}) }

func (f *feeder) send(m message) {
	f.mu.Lock()
	ended := f.ended
	if !ended {
		f.mailbox = append(f.mailbox, m)
	}
	f.mu.Unlock()
	if ended {
		m.end()
		return
	}
	f.wake()
}

// end ends the views that a message hands over, to a feeder that has ended.
func (m message) end() {
	switch m.kind {
	case joins:
		for e := range m.batch.members {
			e.end()
		}
	case suspends:
		m.of.end()
	}
}

func (f *feeder) wake() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

func (f *feeder) run() {
	defer f.end()
	for {
		changed := f.parent.of.Changed()
		f.advance()
		f.read()
		f.views.relieve()
		f.retry()
		select {
		case <-changed:
		case <-f.again:
			f.readmit()
		case <-f.woken:
		case <-f.parent.ended:
			return
		case <-f.parent.of.Done():
			f.views.removeAll(f.parent)
			return
		}
	}
}

// end gives up all views: all have been removed.
func (f *feeder) end() {
	f.mu.Lock()
	f.ended = true
	messages := f.mailbox
	f.mailbox = nil
	f.mu.Unlock()
	for _, m := range messages {
		m.end()
	}
	for _, b := range f.early {
		message{kind: joins, batch: b}.end()
	}
	for e := range f.members {
		e.end()
	}
	for e := range f.suspended {
		e.end()
	}
}

// read handles the messages in the mailbox.
func (f *feeder) read() {
	f.mu.Lock()
	messages := f.mailbox
	f.mailbox = nil
	f.mu.Unlock()
	early := f.early
	f.early = nil
	for _, b := range early {
		f.join(b)
	}
	for _, m := range messages {
		if m.kind == joins {
			f.join(m.batch)
			continue
		}
		f.handle(m.kind, m.of)
	}
}

func (f *feeder) handle(kind messageKind, e *entry) {
	switch kind {
	case suspends:
		f.suspend(e)
		return
	case windows:
		f.showWindows(e)
		return
	}
	if !f.remove(e) {
		return // a builder has it, and will notice
	}
	switch kind {
	case leaves:
		e.end()
	case fails:
		f.tooLarge(e)
	}
}

// remove removes a view from the feeder. It returns false if the feeder does not have it.
func (f *feeder) remove(e *entry) bool {
	if _, feeds := f.members[e]; feeds {
		f.drop(e)
		delete(f.declared, e)
		e.state.FedBy(nil)
		e.at, e.cursor = f.at, f.at.Seq()
		return true
	}
	_, suspends := f.suspended[e]
	delete(f.suspended, e)
	return suspends
}

// suspend keeps a view until there is a new state.
func (f *feeder) suspend(e *entry) {
	newest := f.parent.of.Snapshot()
	switch {
	case e.removed.Load():
		e.end()
	case e.full.Load():
		f.tooLarge(e)
	case newest.Number() != e.seen:
		f.views.build(e) // there is one already
	default:
		f.suspended[e] = struct{}{}
		f.showWindows(e)
	}
}

// showWindows publishes the windows of an order that were opened meanwhile. If a builder has the order, it
// will.
func (f *feeder) showWindows(e *entry) {
	_, feeds := f.members[e]
	_, suspends := f.suspended[e]
	switch {
	case e.order == nil || !feeds && !suspends:
	case feeds && e.alone.Load():
		f.giveAway(e)
	case !e.order.stirs():
	case feeds:
		e.show(f.at)
	case suspends && e.whole:
		e.show(e.at)
	case suspends:
		e.order.adopt()
	}
}

// giveAway has builders feed a view from now on.
func (f *feeder) giveAway(e *entry) {
	if f.remove(e) {
		f.letAlone(e)
	}
}

// letAlone has builders feed a view that has the state of the feeder.
func (f *feeder) letAlone(e *entry) {
	e.show(f.at)
	e.seen, e.upTo = f.at.Number(), time.Now()
	f.suspend(e)
}

// tooLarge gives up the state of a view, until there is room.
func (f *feeder) tooLarge(e *entry) {
	e.tooLarge()
	f.suspended[e] = struct{}{}
}

// joinMost is how many entries a feeder feeds to a batch that joins it.
const joinMost = 4096

// join takes over the views of a batch that is up to date, or nearly.
func (f *feeder) join(b *batch) {
	switch {
	case !f.begun || b.at.Generation() == f.at.Generation() && b.at.Number() > f.at.Number():
		f.early = append(f.early, b) // the next state is on its way
		return
	case b.at.Generation() != f.at.Generation() || f.at.Forgotten() > b.at.Seq() || f.at.Seq()-b.at.Seq() > joinMost:
		f.views.builders.continueWith(b)
		return
	}
	b.feed(f.at)
	for e := range b.members {
		f.take(e)
	}
}

// take makes the feeder feed a view that has its state.
func (f *feeder) take(e *entry) {
	e.at, e.cursor = f.at, f.at.Seq()
	switch {
	case e.removed.Load():
		e.end()
		return
	case e.full.Load():
		f.tooLarge(e) // since its builder last looked
		return
	case e.alone.Load():
		f.letAlone(e)
		return
	}
	f.add(e)
	if e.declared != nil {
		f.declared[e] = struct{}{}
		e.show(f.at)
		return
	}
	e.state.FedBy(&f.fed)
	if e.state.Awaited() {
		e.state.Publish(f.at) // by a reader that has seen only what the builder published
	}
}

// advance feeds the views with what is new.
func (f *feeder) advance() {
	s := f.parent.of.Snapshot()
	if f.begun && s.Number() == f.at.Number() {
		return
	}
	if f.begun {
		f.parent.changes()
	}
	f.buildSuspended()
	switch {
	case !f.begun:
	case s.Generation() != f.at.Generation() || s.Forgotten() > f.at.Seq():
		f.restart()
	default:
		f.feed(s)
	}
	f.at, f.begun = s, true
	for e := range f.declared {
		if e.show(s) {
			e.declared.Received("bookmark", false)
		}
	}
	if !f.fed.Set(s) {
		return
	}
	for e := range f.members {
		if e.state.Awaited() {
			e.state.Publish(s)
		}
	}
}

// buildSuspended has builders look at the views that waited for a new state.
func (f *feeder) buildSuspended() {
	for e := range f.suspended {
		if !e.full.Load() {
			delete(f.suspended, e)
			e.upTo = time.Now() // it had the newest state until this one came
			f.views.build(e)
		}
	}
}

// readmit has builders build the views that had no room, if there is room now.
func (f *feeder) readmit() {
	f.again = nil
	for e := range f.suspended {
		if e.full.Load() && f.views.hasRoom() {
			delete(f.suspended, e)
			e.full.Store(false)
			f.views.build(e)
		}
	}
}

// retryEvery is how often it is looked whether there is room for views that did not fit.
const retryEvery = 5 * time.Second

// retry begins to wait until then, if a view waits for room.
func (f *feeder) retry() {
	for e := range f.suspended {
		if f.again == nil && e.full.Load() {
			f.again = time.After(retryEvery)
			return
		}
	}
}

// restart gives all views to the builders: what they have is of no more use.
func (f *feeder) restart() {
	for e := range f.members {
		f.remove(e)
		f.views.build(e)
	}
}
