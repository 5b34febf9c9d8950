package authz

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/stream"
)

// Authorization is the permission of a stream to go on, and what it is to follow. A nil *Authorization never ends: it is
// that of a stream in a gateway that does not ask for credentials, unless it has windows, which can be moved.
//
// All methods may be called from any goroutine.
type Authorization struct {
	// Static after construction.
	id        string
	switches  bool     // the stream can follow other parts of its watches while it goes on
	clustered bool     // a cluster says who has it, or what may be read of one of its watches
	watches   []string // the names of its watches

	// Atomic.
	validity atomic.Pointer[validity]
	ending   atomic.Pointer[ending] // nil: it lasts until its time
	waiting  atomic.Bool            // there are switches

	// Guarded by the mutex of its table.
	keys  []string // that revoke it
	first int      // how many of them are of the credential with which it began

	evaluating sync.Mutex     // guards the following fields
	parts      []Part         // of watches, that the stream follows or is about to
	moved      map[int]uint64 // the number of the last move of a window, by the index of its watch

	mu      sync.Mutex // guards the following fields
	moving  moving
	ended   chan struct{}
	changed chan struct{} // holds an element if there are switches
	notify  func()
	next    map[int]Switch // not taken yet, by the index of the watch
}

// validity says who holds the authorization, and until when. Static after construction.
type validity struct {
	who    *credential.Identity // nil: the gateway did not ask for credentials when the stream began
	ends   time.Time            // when the credential ends; zero: never
	leaves time.Time            // when the stream gets its goodbye, a little earlier
}

// ending says why an authorization has ended before its time. Static after construction.
type ending struct {
	reason stream.GoodbyeReason
	at     time.Time
	losses []int // the indexes of the watches that its holder may not see any more
}

// farewell is the period before the end of a credential in which its streams end, each at a
// random moment of the first nine tenths, so that they do not all come back at once. It is at
// most half of the time that is left when a stream begins, so that a client with a short
// credential has time to renew it.
const farewell = 30 * time.Second

// validityOf returns the validity of an authorization that an identity gets now.
func validityOf(who *credential.Identity, now time.Time) *validity {
	v := &validity{who: who}
	if who == nil || who.Expires.IsZero() {
		return v
	}
	left := max(who.Expires.Sub(now), 0)
	v.ends = now.Add(left)
	window := min(left/2, farewell)
	v.leaves = v.ends.Add(-window + rand.N(window*9/10+1))
	return v
}

// until returns v with the end of other, if that is later.
func (v *validity) until(other *validity) *validity {
	if v.ends.IsZero() || !other.ends.IsZero() && !other.ends.After(v.ends) {
		return v
	}
	return &validity{who: v.who, ends: other.ends, leaves: other.leaves}
}

// ID returns the id of the stream, with which its client can renew the authorization; empty: there is no
// authorization.
func (p *Authorization) ID() string {
	if p == nil {
		return ""
	}
	return p.id
}

// Holder returns the identity that holds the authorization; nil: the gateway did not ask for credentials.
func (p *Authorization) Holder() *credential.Identity {
	if p == nil {
		return nil
	}
	return p.validity.Load().who
}

// ReasonToEnd returns why the stream must end now, or "".
func (p *Authorization) ReasonToEnd(now time.Time) stream.GoodbyeReason {
	if p == nil {
		return ""
	}
	if e := p.ending.Load(); e != nil {
		return e.reason
	}
	if v := p.validity.Load(); !v.leaves.IsZero() && !now.Before(v.leaves) {
		return stream.GoodbyeTokenExpired
	}
	return ""
}

// EndsAt returns when the stream must end, as far as it is known; zero: never.
func (p *Authorization) EndsAt() time.Time {
	if p == nil {
		return time.Time{}
	}
	if e := p.ending.Load(); e != nil {
		return e.at
	}
	return p.validity.Load().leaves
}

// CutAt returns when the stream must be cut off if its goodbye could not be written by then:
// after the given time, but no later than its credential expires. Zero: never.
func (p *Authorization) CutAt(patience time.Duration) time.Time {
	if p == nil {
		return time.Time{}
	}
	v := p.validity.Load()
	at := v.leaves
	if e := p.ending.Load(); e != nil {
		at = e.at
	}
	if at.IsZero() {
		return at
	}
	if at = at.Add(patience); !v.ends.IsZero() && v.ends.Before(at) {
		return v.ends
	}
	return at
}

// Ended returns a channel that is closed when the authorization ends before its time; nil for a nil
// *Authorization.
func (p *Authorization) Ended() <-chan struct{} {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.ended = make(chan struct{})
		if p.ending.Load() != nil {
			close(p.ended)
		}
	}
	return p.ended
}

// Changed returns a channel that signals that there may be switches; nil for a nil *Authorization.
func (p *Authorization) Changed() <-chan struct{} {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{}, 1)
		if len(p.next) > 0 {
			p.changed <- struct{}{}
		}
	}
	return p.changed
}

// Notify makes the authorization call f when there are switches, and when it ends before its time. If
// that has happened already, f is called at once. f must not block.
func (p *Authorization) Notify(f func()) {
	p.mu.Lock()
	p.notify = f
	news := len(p.next) > 0 || p.ending.Load() != nil
	p.mu.Unlock()
	if news {
		f()
	}
}

// Switches returns the switches that were added since the last call.
func (p *Authorization) Switches() map[int]Switch {
	if p == nil || !p.waiting.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.next
	p.next = nil
	p.waiting.Store(false)
	return next
}

// Losses returns the indexes of the watches that the holder may not see any more, once the authorization has
// ended.
func (p *Authorization) Losses() []int {
	if p == nil {
		return nil
	}
	if e := p.ending.Load(); e != nil {
		return e.losses
	}
	return nil
}

// change adds switches for the stream. Of several switches of a watch, the last one counts, and it tells of all moves.
func (p *Authorization) change(all []Switch) {
	p.mu.Lock()
	if p.next == nil {
		p.next = map[int]Switch{}
	}
	for _, s := range all {
		if former, there := p.next[s.Index]; there {
			s = s.after(former)
		}
		p.next[s.Index] = s
	}
	p.waiting.Store(true)
	if p.changed != nil {
		select {
		case p.changed <- struct{}{}:
		default: // there is a signal already
		}
	}
	notify := p.notify
	p.mu.Unlock()
	if notify != nil {
		notify()
	}
}

// end ends the authorization now. The first reason counts: it returns false if there was one before.
func (p *Authorization) end(reason stream.GoodbyeReason, losses []int) bool {
	p.mu.Lock()
	if p.ending.Load() != nil {
		p.mu.Unlock()
		return false
	}
	p.ending.Store(&ending{reason, time.Now(), losses})
	if p.ended != nil {
		close(p.ended)
	}
	notify := p.notify
	p.mu.Unlock()
	if notify != nil {
		notify()
	}
	return true
}
