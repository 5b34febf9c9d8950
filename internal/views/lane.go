package views

import (
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/log"
)

// lane feeds those views of a watch that are up to date: one goroutine for all of them.
type lane struct {
	// Static after construction.
	parent *parent
	ring   chan struct{} // there is mail

	fed log.Fed // shared with the logs of the views

	mu    sync.Mutex // guards the following fields
	mail  []letter
	ended bool

	// Owned by the goroutine.
	bundle
	begun  bool                // the views have a state
	parked map[*entry]struct{} // costly ones, and those without a state, until the next state
	again  <-chan time.Time    // when to look whether there is room for views; nil: all have some
	early  []*batch            // that are ahead of the lane
	named  map[*entry]struct{} // of the members, those that are declared: each state makes one of theirs
}

// letter is what is to be done with a view, or with a batch.
type letter struct {
	what  what
	of    *entry
	batch *batch
}

type what uint8

const (
	joins  what = iota // a batch is up to date, or nearly
	parks              // a view waits for the next state
	leaves             // it was removed
	fails              // it has no room
)

func newLane(v *Views, p *parent, indexed bool) *lane {
	return &lane{bundle: newBundle(v, indexed), parent: p, ring: make(chan struct{}, 1), parked: map[*entry]struct{}{}, named: map[*entry]struct{}{}}
}

// post asks for something to be done with a view. It may be called from any goroutine.
func (l *lane) post(w what, e *entry) { l.send(letter{what: w, of: e}) }

// hand hands a batch over.
func (l *lane) hand(b *batch) { l.send(letter{what: joins, batch: b}) }

func (l *lane) send(m letter) {
	l.mu.Lock()
	ended := l.ended
	if !ended {
		l.mail = append(l.mail, m)
	}
	l.mu.Unlock()
	if ended {
		m.end()
		return
	}
	l.wake()
}

// end ends the views that a letter hands over, to a lane that has ended.
func (m letter) end() {
	switch m.what {
	case joins:
		for e := range m.batch.members {
			e.end()
		}
	case parks:
		m.of.end()
	}
}

func (l *lane) wake() {
	select {
	case l.ring <- struct{}{}:
	default:
	}
}

func (l *lane) run() {
	defer l.end()
	for {
		changed := l.parent.of.Changed()
		l.advance()
		l.read()
		l.views.relieve()
		l.retry()
		select {
		case <-changed:
		case <-l.again:
			l.readmit()
		case <-l.ring:
		case <-l.parent.ended:
			return
		case <-l.parent.of.Done():
			l.views.removeAll(l.parent)
			return
		}
	}
}

// end gives up all views: all have been removed.
func (l *lane) end() {
	l.mu.Lock()
	l.ended = true
	mail := l.mail
	l.mail = nil
	l.mu.Unlock()
	for _, m := range mail {
		m.end()
	}
	for _, b := range l.early {
		letter{what: joins, batch: b}.end()
	}
	for e := range l.members {
		e.end()
	}
	for e := range l.parked {
		e.end()
	}
}

// read does what the mail says.
func (l *lane) read() {
	l.mu.Lock()
	mail := l.mail
	l.mail = nil
	l.mu.Unlock()
	early := l.early
	l.early = nil
	for _, b := range early {
		l.join(b)
	}
	for _, m := range mail {
		if m.what == joins {
			l.join(m.batch)
			continue
		}
		l.handle(m.what, m.of)
	}
}

func (l *lane) handle(w what, e *entry) {
	if w == parks {
		l.park(e)
		return
	}
	if !l.dismiss(e) {
		return // a builder has it, and will notice
	}
	switch w {
	case leaves:
		e.end()
	case fails:
		l.tooLarge(e)
	}
}

// dismiss removes a view from the lane. It returns false if the lane does not have it.
func (l *lane) dismiss(e *entry) bool {
	if _, feeds := l.members[e]; feeds {
		l.drop(e)
		delete(l.named, e)
		e.state.FedBy(nil)
		e.at, e.cursor = l.at, l.at.Seq()
		return true
	}
	_, parks := l.parked[e]
	delete(l.parked, e)
	return parks
}

// park keeps a view until there is a new state.
func (l *lane) park(e *entry) {
	newest := l.parent.of.Snapshot()
	switch {
	case e.removed.Load():
		e.end()
	case e.full.Load():
		l.tooLarge(e)
	case newest.Number() != e.seen:
		l.views.build(e) // there is one already
	default:
		l.parked[e] = struct{}{}
	}
}

// tooLarge gives up the state of a view, until there is room.
func (l *lane) tooLarge(e *entry) {
	e.tooLarge()
	l.parked[e] = struct{}{}
}

// joinMost is how many entries a lane feeds to a batch that joins it.
const joinMost = 4096

// join takes over the views of a batch that is up to date, or nearly.
func (l *lane) join(b *batch) {
	switch {
	case !l.begun || b.at.Generation() == l.at.Generation() && b.at.Number() > l.at.Number():
		l.early = append(l.early, b) // the next state is on its way
		return
	case b.at.Generation() != l.at.Generation() || l.at.Forgotten() > b.at.Seq() || l.at.Seq()-b.at.Seq() > joinMost:
		l.views.builders.continueWith(b)
		return
	}
	b.feed(l.at)
	for e := range b.members {
		l.take(e)
	}
}

// take makes the lane feed a view that has its state.
func (l *lane) take(e *entry) {
	e.at, e.cursor = l.at, l.at.Seq()
	switch {
	case e.removed.Load():
		e.end()
		return
	case e.full.Load():
		l.tooLarge(e) // since its builder last looked
		return
	}
	l.add(e)
	if e.declared != nil {
		l.named[e] = struct{}{}
		e.show(l.at)
		return
	}
	e.state.FedBy(&l.fed)
	if e.state.Awaited() {
		e.state.Publish(l.at) // by a reader that has seen only what the builder published
	}
}

// advance feeds the views with what is new.
func (l *lane) advance() {
	s := l.parent.of.Snapshot()
	if l.begun && s.Number() == l.at.Number() {
		return
	}
	if l.begun {
		l.parent.changes()
	}
	l.unpark()
	switch {
	case !l.begun:
	case s.Generation() != l.at.Generation() || s.Forgotten() > l.at.Seq():
		l.restart()
	default:
		l.feed(s)
	}
	l.at, l.begun = s, true
	for e := range l.named {
		if e.show(s) {
			e.declared.Received("bookmark", false)
		}
	}
	if !l.fed.Set(s) {
		return
	}
	for e := range l.members {
		if e.state.Awaited() {
			e.state.Publish(s)
		}
	}
}

// unpark has builders look at the views that waited for a new state.
func (l *lane) unpark() {
	for e := range l.parked {
		if !e.full.Load() {
			delete(l.parked, e)
			l.views.build(e)
		}
	}
}

// readmit has builders build the views that had no room, if there is room now.
func (l *lane) readmit() {
	l.again = nil
	for e := range l.parked {
		if e.full.Load() && l.views.hasRoom() {
			delete(l.parked, e)
			e.full.Store(false)
			l.views.build(e)
		}
	}
}

// retryEvery is how often it is looked whether there is room for views that did not fit.
const retryEvery = 5 * time.Second

// retry begins to wait until then, if a view waits for room.
func (l *lane) retry() {
	for e := range l.parked {
		if l.again == nil && e.full.Load() {
			l.again = time.After(retryEvery)
			return
		}
	}
}

// restart gives all views to the builders: what they have is of no more use.
func (l *lane) restart() {
	for e := range l.members {
		l.dismiss(e)
		l.views.build(e)
	}
}
