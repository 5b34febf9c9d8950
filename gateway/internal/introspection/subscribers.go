package introspection

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/internal/loglimit"
)

// List holds what the streams do not hold themselves: their clients, the streams
// that have their own goroutine, and the streams that ended last.
//
// All methods may be called from any goroutine.
type List struct {
	// Static after construction.
	log *slog.Logger
	cut *slog.Logger // for streams that the gateway cut off; it leaves out lines

	mu      sync.Mutex // guards the following fields
	stamp   int64      // the last one that was assigned
	Clients limits.InternTable[Client]
	open    map[*PublishedProgress]struct{} // streams that have their own goroutine
	newest  []Departure                     // a ring
	next    int                             // where in the ring the next one goes
	reasons map[DepartureReason]uint64
	minutes minutes // of departures
}

// DeparturesKept is how many ended streams are remembered.
const DeparturesKept = 100

// cutPerMinute is how many streams that were cut off are logged.
const cutPerMinute = 30

// New returns an empty list, which logs the streams that end.
func New(log *slog.Logger) *List {
	return &List{log: log, cut: loglimit.New(log, cutPerMinute), open: map[*PublishedProgress]struct{}{}, reasons: map[DepartureReason]uint64{}}
}

// Enter registers the origin of a stream; of is nil if the gateway does not ask for credentials.
// The identity must be passed to RecordEnd.
func (s *List) Enter(from netip.AddrPort, agent string, of *credential.Identity) Identity {
	client := clientOf(agent, of)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stamp = max(s.stamp+1, Nanos(time.Now()))
	who := Identity{Stamp: s.stamp, Origin: originOf(from)}
	if client != (Client{}) {
		who.client = s.Clients.Enter(client) + 1
	}
	return who
}

// Client returns the client of a stream that has not ended yet.
func (s *List) Client(who Identity) (c Client) {
	if who.client == 0 {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Clients.Key(who.client - 1)
}

// clientOf is Client for a stream with its own goroutine; it is empty if the stream has
// ended.
func (s *List) clientOf(one *PublishedProgress) (c Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.open[one]; !there || one.who.client == 0 {
		return c
	}
	return s.Clients.Key(one.who.client - 1)
}

// RecordEnd records the end of a stream.
func (s *List) RecordEnd(who Identity, last Subscriber, why DepartureReason) {
	last.Identify(who)
	d := Departure{Subscriber: last, Left: Instant(time.Now()), Reason: why}
	s.recordEnd(who, &d)
	s.logEnd(&d)
}

// logEnd logs the end of a stream. There may be very many, so those that are part of normal
// operation are logged at level debug.
func (s *List) logEnd(d *Departure) {
	log, level := s.log, slog.LevelDebug
	if d.Reason == LeftUnread || d.Reason == LeftByAccident {
		log, level = s.cut, slog.LevelInfo
	}
	ctx := context.Background()
	if !log.Enabled(ctx, level) {
		return
	}
	log.LogAttrs(ctx, level, "stream ended", slog.String("client", d.Address), slog.String("reason", string(d.Reason)),
		slog.Duration("duration", d.Left.Sub(d.Since)), slog.Uint64("bytes", d.Bytes), slog.Uint64("events", d.Events),
		slog.Any("watches", d.Watches), slog.String("transport", d.Transport), slog.String("user_agent", d.UserAgent))
}

// recordEnd adds a stream to those that ended last, and fills in its client.
func (s *List) recordEnd(who Identity, d *Departure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.OfClient(s.forgetLocked(who))
	s.reasons[d.Reason]++
	s.minutes.add(d.Left, d.Reason)
	if len(s.newest) < DeparturesKept {
		s.newest = append(s.newest, *d)
		return
	}
	s.newest[s.next] = *d
	s.next = (s.next + 1) % DeparturesKept
}

// forget removes a stream whose end is not worth remembering.
func (s *List) forget(who Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(who)
}

func (s *List) forgetLocked(who Identity) (c Client) {
	if who.client == 0 {
		return c
	}
	return s.Clients.Leave(who.client - 1)
}

// Departures returns the streams of a watch, or of all if it is empty, that ended
// last, the newest first. It also returns how many streams ended for each reason
// since the start.
func (s *List) Departures(watch string) ([]Departure, map[DepartureReason]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := make([]Departure, 0, len(s.newest))
	for i := range s.newest {
		d := &s.newest[(s.next+len(s.newest)-1-i)%len(s.newest)]
		if d.watches(watch) {
			newest = append(newest, *d)
		}
	}
	return newest, maps.Clone(s.reasons)
}

// Add adds a stream with its own goroutine. It must be passed to Remove.
func (s *List) Add(one *PublishedProgress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[one] = struct{}{}
}

// Remove records the end of such a stream; why is empty if that is not worth
// remembering.
func (s *List) Remove(one *PublishedProgress, why DepartureReason) {
	s.mu.Lock()
	delete(s.open, one)
	s.mu.Unlock()
	if why == "" {
		s.forget(one.who)
		return
	}
	s.RecordEnd(one.who, one.subscriber(), why)
}

// Standalone returns the streams that have their own goroutine.
func (s *List) Standalone() []*PublishedProgress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}
