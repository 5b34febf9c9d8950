package gateway

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// subscribers remembers what is not told by the streams themselves: who they are
// from, those that have a goroutine of their own, and who left last.
//
// All methods may be called from any goroutine.
type subscribers struct {
	mu        sync.Mutex // guards the following fields
	stamp     int64      // the last one that was given
	agents    tally[string]
	standings map[*standing]struct{}
	newest    []departure // a ring
	next      int         // where in the ring the next one goes
	reasons   map[departureReason]uint64
}

const (
	// departuresKept is how many of those who left are remembered.
	departuresKept = 100
	// agentKept is how much of the name of a user agent is.
	agentKept = 128
)

func newSubscribers() *subscribers {
	return &subscribers{standings: map[*standing]struct{}{}, reasons: map[departureReason]uint64{}}
}

// enter takes note of whom a stream is for. It must be given to leave, or to
// forget.
func (s *subscribers) enter(from netip.AddrPort, agent string) identity {
	if len(agent) > agentKept {
		agent = agent[:agentKept]
	}
	agent = strings.Clone(strings.ToValidUTF8(agent, "")) // not all of a request for the sake of it
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stamp = max(s.stamp+1, nanosOf(time.Now()))
	who := identity{stamp: s.stamp, origin: originOf(from)}
	if agent != "" {
		who.agent = s.agents.enter(agent) + 1
	}
	return who
}

// agent returns the user agent of a stream that did not leave yet.
func (s *subscribers) agent(who identity) string {
	if who.agent == 0 {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agents.key(who.agent - 1)
}

// agentOf is agent for one that has a goroutine of its own; empty if it has left.
func (s *subscribers) agentOf(one *standing) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.standings[one]; !there || one.who.agent == 0 {
		return ""
	}
	return s.agents.key(one.who.agent - 1)
}

// leave follows the end of a stream.
func (s *subscribers) leave(who identity, last subscriber, why departureReason) {
	last.identify(who)
	d := departure{subscriber: last, Left: instant(time.Now()), Reason: why}
	s.mu.Lock()
	defer s.mu.Unlock()
	d.UserAgent = s.forgetLocked(who)
	s.reasons[why]++
	if len(s.newest) < departuresKept {
		s.newest = append(s.newest, d)
		return
	}
	s.newest[s.next] = d
	s.next = (s.next + 1) % departuresKept
}

// forget follows the end of a stream that is not worth remembering.
func (s *subscribers) forget(who identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(who)
}

func (s *subscribers) forgetLocked(who identity) (agent string) {
	if who.agent == 0 {
		return ""
	}
	return s.agents.leave(who.agent - 1)
}

// departures returns those who left a watch last, of all if it is empty, the newest
// first; and why how many left since the start.
func (s *subscribers) departures(watch string) ([]departure, map[departureReason]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := make([]departure, 0, len(s.newest))
	for i := range s.newest {
		d := &s.newest[(s.next+len(s.newest)-1-i)%len(s.newest)]
		if d.watches(watch) {
			newest = append(newest, *d)
		}
	}
	return newest, maps.Clone(s.reasons)
}

// stand adds a stream that has a goroutine of its own. It must be given to fall.
func (s *subscribers) stand(one *standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standings[one] = struct{}{}
}

// fall follows the end of such a stream; why is empty where that is not worth
// remembering.
func (s *subscribers) fall(one *standing, why departureReason) {
	s.mu.Lock()
	delete(s.standings, one)
	s.mu.Unlock()
	if why == "" {
		s.forget(one.who)
		return
	}
	s.leave(one.who, one.subscriber(), why)
}

// standing returns those who have a goroutine of their own.
func (s *subscribers) standing() []*standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.standings))
}
