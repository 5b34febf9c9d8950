package shard

import (
	"sync"
	"sync/atomic"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
)

// inbox is what other goroutines have for a shard, and how they wake it.
//
// Its methods may be called from any goroutine.
type inbox struct {
	mu                    sync.Mutex   // guards the following fields
	poll                  epoll.Poller // nil: the goroutine does not run
	arrived               []*unsharedStream
	granted               []*unsharedStream // unshared streams whose lease was granted
	called                []*group          // groups with a member whose lease was granted
	changedAuthorizations []uint64          // keys of connections whose authorization has changed
	asked                 []func()          // queries about the streams
	wokenBy               []*watchWaker     // whose watches may have news for groups
	aborted               bool              // all streams are closed abruptly, and no more are carried

	// Atomic.
	rung    atomic.Bool // there may be news
	alarmed atomic.Bool // streams that wait for their turn must be checked too
}

// arrive hands a stream over. On an error, which is why the shard cannot run, the
// caller still owns the stream.
func (s *shard) arrive(l *unsharedStream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.aborted {
		return errAborted
	}
	if s.poll == nil {
		p, err := s.sockets.NewPoller()
		if err != nil {
			return err
		}
		s.poll = p
		s.stretches.enter()
		go s.run(p)
	}
	s.arrived = append(s.arrived, l)
	s.poll.Ring()
	return nil
}

// ring makes the shard check for news.
func (in *inbox) ring() {
	in.rung.Store(true)
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.poll != nil {
		in.poll.Ring()
	}
}

// alarm makes the shard check all streams, also those that wait for their turn.
func (in *inbox) alarm() {
	in.alarmed.Store(true)
	in.ring()
}

// call resumes a stream whose turn has come.
func (in *inbox) call(l *unsharedStream) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.poll != nil {
		in.granted = append(in.granted, l)
		in.poll.Ring()
	}
}

// callGroup resumes a group with a member whose turn has come.
func (in *inbox) callGroup(g *group) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.poll != nil {
		in.called = append(in.called, g)
		in.poll.Ring()
	}
}

// ask runs a query on the goroutine, and waits for its answer. Without a
// goroutine there are no streams.
func (in *inbox) ask(query func()) {
	answered := make(chan struct{})
	if !in.post(func() { defer close(answered); query() }) {
		return
	}
	<-answered
}

func (in *inbox) post(query func()) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.poll == nil {
		return false
	}
	in.asked = append(in.asked, query)
	in.poll.Ring()
	return true
}

// abort closes all streams abruptly. No more are carried.
func (in *inbox) abort() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.aborted = true
	if in.poll != nil {
		in.poll.Ring()
	}
}

// retire ends the goroutine, unless a stream or a query has arrived meanwhile.
func (s *shard) retire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.arrived)+len(s.asked) > 0 {
		return false
	}
	s.poll, s.granted, s.called, s.changedAuthorizations = nil, nil, nil, nil
	s.p.Shut()
	s.stretches.leave()
	s.carried = carried{}
	return true
}

// admit takes over the streams that have arrived, answers the queries, and reports
// whether any stream has arrived or been given its turn.
func (s *shard) admit() bool {
	s.mu.Lock()
	granted, called, changedAuthorizations, aborted := s.granted, s.called, s.changedAuthorizations, s.aborted
	s.arriving, s.queries = append(s.arriving, s.arrived...), append(s.queries, s.asked...)
	s.arrived, s.granted, s.called, s.changedAuthorizations, s.asked = nil, nil, nil, nil, nil
	s.mu.Unlock()
	news := len(s.arriving)+len(granted)+len(called)+len(changedAuthorizations) > 0
	for len(s.arriving) > 0 {
		s.welcome(take(&s.arriving))
	}
	for _, l := range granted {
		if s.unshared[l.slot] == l {
			s.enqueue(l)
		}
	}
	for _, g := range called {
		s.enqueueGroup(g)
	}
	for _, key := range changedAuthorizations {
		s.authorizationChanged(key)
	}
	for len(s.queries) > 0 {
		take(&s.queries)()
	}
	if aborted {
		s.closeAll()
	}
	return news
}

// take removes and returns the first element.
func take[T any](list *[]T) (first T) {
	first, (*list)[0] = (*list)[0], first
	if *list = (*list)[1:]; len(*list) == 0 {
		*list = nil
	}
	return first
}
