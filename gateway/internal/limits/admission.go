package limits

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/watchtide/watchtide/stream/watch"
)

// Limits are how many streams may be open at the same time. 0 means any number.
type Limits struct {
	Total     int
	PerClient int
	PerWatch  int
}

// Open is how many streams are open where another one would be counted.
type Open struct {
	Draining bool // the gateway drains
	Total    int
	Watch    int // of its watches, the one that has most
	Client   int
}

// Refuses returns why another stream may not be opened, the widest limit first: another
// replica may have room then. "": it may.
func (l Limits) Refuses(n Open) Reason {
	switch {
	case n.Draining:
		return RefusedDraining
	case reached(n.Total, l.Total):
		return refusedSubscribers
	case reached(n.Watch, l.PerWatch):
		return refusedWatch
	case reached(n.Client, l.PerClient):
		return refusedClient
	}
	return ""
}

// Ref refers to an open stream as it was counted: numbers that only admission
// can read, so that the last owner of the stream can count it out.
type Ref struct {
	client  int32
	watches int32 // the set of watches of the stream; negative: its row in the table of uses
}

// SameClient reports whether two streams are of one client. It may be wrong once one of them has been counted out.
func (r Ref) SameClient(other Ref) bool { return r.client == other.client }

// Client is the number of the client of a stream. A client without streams has none, and another one may get it then.
func (r Ref) Client() int32 { return r.client }

// Controller decides whether another stream may be opened, counts the open streams,
// and ends them when the gateway drains. All transports share one.
//
// Its memory is proportional to the number of open streams, and to the number of
// different clients and choices of watches among them.
//
// All methods may be called from any goroutine.
type Controller struct {
	// Static after construction.
	Draining chan struct{} // closed by drain
	Idle     chan struct{} // closed when the gateway drains and no stream is open

	mu      sync.Mutex // guards the following fields
	limits  Limits
	spread  time.Duration // the longest period over which goodbyes are spread; ≤ 0: none
	open    int
	leaving int  // streams that were open when the drain began
	drained bool // Drain was called
	clients InternTable[Client]
	sets    InternTable[string] // of watches: their names, separated by commas
	watches map[string]int
	uses    usesTable
}

// New returns a controller. A drain spreads the goodbyes of its streams over the given
// time, or over less if there are few.
func New(l Limits, spread time.Duration) *Controller {
	return &Controller{
		limits: l, spread: spread, watches: map[string]int{},
		Draining: make(chan struct{}), Idle: make(chan struct{}),
	}
}

// Reconfigure changes the limits for streams that are opened from now on, and the time over
// which a drain that has not begun spreads the goodbyes.
func (a *Controller) Reconfigure(l Limits, spread time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limits, a.spread = l, spread
}

// Enter counts a stream in and returns a reference, which must be passed to Leave.
// Otherwise it returns the reason to refuse the stream.
func (a *Controller) Enter(c Client, watches []string) (Ref, *Refusal) {
	set := strings.Join(watches, ",") // no name contains one
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.refusal(c, watches); r != nil {
		return Ref{}, r
	}
	a.open++
	for _, name := range watches {
		a.watches[name]++
	}
	return Ref{client: a.clients.Enter(c), watches: a.sets.Enter(set)}, nil
}

// AddUses returns the reference to a stream that uses watches of templates. Leave releases them.
func (a *Controller) AddUses(r Ref, uses []*watch.Use) Ref {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(uses) > 0 {
		r.watches = -a.uses.enter(r.watches, uses)
	}
	return r
}

// refusal returns why a stream must be refused; nil: it need not be.
func (a *Controller) refusal(c Client, watches []string) *Refusal {
	watch, most := a.fullest(watches)
	n := Open{Draining: a.drained, Total: a.open, Watch: most}
	if a.limits.PerClient > 0 {
		n.Client = a.clients.streams(c)
	}
	switch reason := a.limits.Refuses(n); reason {
	case "":
		return nil
	case refusedSubscribers:
		return &Refusal{Reason: reason, Count: n.Total, Limit: a.limits.Total}
	case refusedWatch:
		return &Refusal{Reason: reason, Count: n.Watch, Limit: a.limits.PerWatch, Watch: watch}
	case refusedClient:
		return &Refusal{Reason: reason, Count: n.Client, Limit: a.limits.PerClient, client: c}
	default:
		return &Refusal{Reason: reason}
	}
}

// fullest returns which of the watches has most streams, and how many.
func (a *Controller) fullest(watches []string) (fullest string, most int) {
	for _, name := range watches {
		if n := a.watches[name]; n > most {
			fullest, most = name, n
		}
	}
	return fullest, most
}

func reached(n, limit int) bool { return limit > 0 && n >= limit }

// Leave counts a stream out. It is called once for each reference.
func (a *Controller) Leave(r Ref) {
	for _, u := range a.leave(r) {
		u.Release()
	}
}

// leave is Leave without the release of what the stream used, which it returns.
func (a *Controller) leave(r Ref) []*watch.Use {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clients.Leave(r.client)
	set, uses := r.watches, []*watch.Use(nil)
	if set < 0 {
		set, uses = a.uses.leave(-set)
	}
	for name := range strings.SplitSeq(a.sets.Leave(set), ",") {
		if a.watches[name]--; a.watches[name] == 0 {
			delete(a.watches, name)
		}
	}
	a.open--
	if a.drained && a.open == 0 {
		close(a.Idle)
	}
	return uses
}

// Count returns how many streams are open.
func (a *Controller) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open
}

// ClientCount returns the number of different clients that have a stream.
func (a *Controller) ClientCount() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clients.Keys()
}

// Drain refuses new streams from now on and makes the open ones end. It returns at
// once; idle is closed when the last stream has ended.
func (a *Controller) Drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.drained {
		return
	}
	a.drained, a.leaving = true, a.open
	close(a.Draining)
	if a.open == 0 {
		close(a.Idle)
	}
}

// IsDraining reports whether Drain was called.
func (a *Controller) IsDraining() bool {
	select {
	case <-a.Draining:
		return true
	default:
		return false
	}
}

// GoodbyeDelay returns how long one stream stays open after the drain began. It is
// random, so that clients do not all move to the other replicas at once.
func (a *Controller) GoodbyeDelay() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return GoodbyeDelay(a.spread, a.leaving, rand.Float64())
}
