package views

import (
	"sync"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/view"
)

// lane feeds those views of a watch that are up to date: one goroutine for all of them.
type lane struct {
	// Static after construction.
	views  *Views
	parent *parent
	ring   chan struct{} // there is mail

	fed log.Fed // shared with the logs of the views

	mu    sync.Mutex // guards the following fields
	mail  []letter
	ended bool

	// Owned by the goroutine.
	at     log.Snapshot // the state that all views have
	begun  bool         // there is one
	index  view.Index[*entry]
	fedBy  map[*entry]struct{} // the views
	parked map[*entry]struct{} // costly ones, and those without a state, until the next state
	early  []*entry            // views that are ahead of at
	open   []*entry            // views that have some of the transaction being read
	news   []*entry            // views that have something new
}

// letter is what is to be done with a view.
type letter struct {
	what what
	of   *entry
}

type what uint8

const (
	joins   what = iota // it is up to date, or nearly
	parks               // it waits for the next state
	leaves              // it was removed
	fails               // it has no room
	deepens             // it must know older deletes
	opens               // it has a reader again
)

func newLane(v *Views, p *parent) *lane {
	return &lane{views: v, parent: p, ring: make(chan struct{}, 1), fedBy: map[*entry]struct{}{}, parked: map[*entry]struct{}{}}
}

// post hands a view over, or asks for something to be done with one. It may be called from
// any goroutine.
func (l *lane) post(w what, e *entry) {
	l.mu.Lock()
	ended := l.ended
	if !ended {
		l.mail = append(l.mail, letter{w, e})
	}
	l.mu.Unlock()
	switch {
	case !ended:
		l.wake()
	case w == joins || w == parks:
		e.end()
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
		select {
		case <-changed:
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
		if m.what == joins || m.what == parks {
			m.of.end()
		}
	}
	for _, e := range l.early {
		e.end()
	}
	for e := range l.fedBy {
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
	for _, m := range mail {
		l.handle(m.what, m.of)
	}
	early := l.early
	l.early = nil
	for _, e := range early {
		l.join(e)
	}
}

func (l *lane) handle(w what, e *entry) {
	switch w {
	case joins:
		l.join(e)
		return
	case parks:
		l.park(e)
		return
	}
	if !l.drop(e) {
		return // a builder has it, and will notice
	}
	switch w {
	case leaves:
		e.end()
	case fails:
		e.tooLarge()
		l.parked[e] = struct{}{}
	case deepens:
		l.views.builders.add(e)
	}
}

// drop removes a view from the lane. It returns false if the lane does not have it.
func (l *lane) drop(e *entry) bool {
	if _, feeds := l.fedBy[e]; feeds {
		delete(l.fedBy, e)
		l.index.Remove(e)
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
	switch {
	case e.removed.Load():
		e.end()
	case l.parent.of.Snapshot().Number() != e.seen && !e.full.Load():
		l.views.builders.add(e) // there is one already
	default:
		l.parked[e] = struct{}{}
	}
}

// join takes over a view that is up to date, or nearly.
func (l *lane) join(e *entry) {
	switch {
	case e.removed.Load():
		e.end()
		return
	case !l.begun || e.at.Generation() == l.at.Generation() && e.at.Number() > l.at.Number():
		l.early = append(l.early, e) // the next state is on its way
		return
	case e.at.Generation() != l.at.Generation() || !e.feedTo(l.at):
		l.views.builders.add(e)
		return
	}
	e.state.FedBy(&l.fed)
	l.fedBy[e] = struct{}{}
	l.index.Add(e, e.definition)
}

// advance feeds the views with what is new.
func (l *lane) advance() {
	s := l.parent.of.Snapshot()
	if l.begun && s.Number() == l.at.Number() {
		return
	}
	l.unpark()
	switch {
	case !l.begun:
	case s.Generation() != l.at.Generation() || s.Forgotten() > l.at.Seq():
		l.restart()
	default:
		l.feed(s)
		return
	}
	l.at, l.begun = s, true
	l.fed.Set(s)
}

// unpark has builders look at the views that waited for a new state.
func (l *lane) unpark() {
	for e := range l.parked {
		delete(l.parked, e)
		if e.full.Load() && !l.views.hasRoom() {
			l.parked[e] = struct{}{}
			continue
		}
		e.full.Store(false)
		l.views.builders.add(e)
	}
}

// restart gives all views to the builders: what they have is of no more use.
func (l *lane) restart() {
	for e := range l.fedBy {
		l.drop(e)
		e.state.SetStatus(stream.Status{State: stream.Resyncing, Since: l.at.Status().Since, Reason: "the watch began anew"})
		l.views.builders.add(e)
	}
}

// feed feeds the views with the entries up to a state.
func (l *lane) feed(s log.Snapshot) {
	before := l.at
	for c := range s.Entries(before.Seq()) {
		l.change(s, c)
		if c.EndsTransaction() {
			for _, e := range l.open {
				e.state.EndTransaction()
				e.opened = false
			}
			l.open = l.open[:0]
		}
	}
	now, was := s.Status(), before.Status()
	everybody := now.State != was.State || now.Reason != was.Reason
	if everybody {
		for e := range l.fedBy {
			e.state.Publish(s)
		}
	} else {
		for _, e := range l.news {
			e.state.Publish(s)
		}
	}
	for _, e := range l.news {
		e.changed = false
	}
	clear(l.news)
	l.news, l.at = l.news[:0], s
	if l.fed.Set(s) {
		for e := range l.fedBy {
			if e.state.Awaited() {
				e.state.Publish(s)
			}
		}
	}
}

// change applies one change of the watch to the views that it concerns.
func (l *lane) change(s log.Snapshot, c log.Entry) {
	r := c.Resource()
	before, had, known := s.Before(c)
	if !known {
		before, had, known = l.at.Before(c)
	}
	if !known || !had && c.Deleted() {
		l.changeOfUnknown(c, r, !known && c.PreviousSeq() > l.at.Seq() || known)
		return
	}
	var change view.Change
	if !c.Deleted() {
		change.New = &r
	}
	if had && !before.Deleted() {
		old := before.Resource()
		change.Old = &old
	}
	l.index.Candidates(change, func(k view.Candidate[*entry]) {
		matches, err := k.After()
		l.views.count.evaluated(err)
		if k.ID.apply(c, r, matches, false) {
			l.touch(k.ID)
		}
	})
}

// changeOfUnknown is for a change of a resource whose former value is not known, so that
// any view may have it.
func (l *lane) changeOfUnknown(c log.Entry, r stream.Resource, mayHave bool) {
	for e := range l.fedBy {
		if !e.definition.Allows(r.Key) {
			continue
		}
		matches, err := false, error(nil)
		if !c.Deleted() {
			matches, err = e.definition.Matches(r)
			l.views.count.evaluated(err)
		}
		if e.apply(c, r, matches, mayHave) {
			l.touch(e)
		}
	}
}

// touch records that a view has something new.
func (l *lane) touch(e *entry) {
	if !e.opened {
		e.opened = true
		l.open = append(l.open, e)
	}
	if !e.changed {
		e.changed = true
		l.news = append(l.news, e)
	}
}
