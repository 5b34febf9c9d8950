package gateway

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/admission"
)

// subscribers remembers what the streams themselves do not know: user agents, the
// streams that have their own goroutine, and the streams that left last.
//
// All methods may be called from any goroutine.
type subscribers struct {
	mu        sync.Mutex // guards the following fields
	stamp     int64      // the last one that was assigned
	agents    admission.InternTable[string]
	standings map[*standing]struct{}
	newest    []departure // a ring
	next      int         // where in the ring the next one goes
	reasons   map[departureReason]uint64
}

const (
	// departuresKept is how many streams that left are remembered.
	departuresKept = 100
	// agentKept is how many bytes of a user agent are kept.
	agentKept = 128
)

func newSubscribers() *subscribers {
	return &subscribers{standings: map[*standing]struct{}{}, reasons: map[departureReason]uint64{}}
}

// enter registers the origin of a stream. The identity must be passed to leave or to
// forget.
func (s *subscribers) enter(from netip.AddrPort, agent string) identity {
	if len(agent) > agentKept {
		agent = agent[:agentKept]
	}
	agent = strings.Clone(strings.ToValidUTF8(agent, "")) // so that it does not retain the whole request
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stamp = max(s.stamp+1, nanosOf(time.Now()))
	who := identity{stamp: s.stamp, origin: originOf(from)}
	if agent != "" {
		who.agent = s.agents.Enter(agent) + 1
	}
	return who
}

// agent returns the user agent of a stream that has not left yet.
func (s *subscribers) agent(who identity) string {
	if who.agent == 0 {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agents.Key(who.agent - 1)
}

// agentOf is agent for a stream with its own goroutine; it is empty if the stream has
// left.
func (s *subscribers) agentOf(one *standing) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.standings[one]; !there || one.who.agent == 0 {
		return ""
	}
	return s.agents.Key(one.who.agent - 1)
}

// leave records the end of a stream.
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

// forget removes a stream whose end is not worth remembering.
func (s *subscribers) forget(who identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(who)
}

func (s *subscribers) forgetLocked(who identity) (agent string) {
	if who.agent == 0 {
		return ""
	}
	return s.agents.Leave(who.agent - 1)
}

// departures returns the streams of a watch, or of all if it is empty, that left
// last, the newest first. It also returns how many left for which reason since the
// start.
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

// stand adds a stream with its own goroutine. It must be passed to fall.
func (s *subscribers) stand(one *standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standings[one] = struct{}{}
}

// fall records the end of such a stream; why is empty if that is not worth
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

// standing returns the streams that have their own goroutine.
func (s *subscribers) standing() []*standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.standings))
}
