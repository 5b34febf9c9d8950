package watch

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// healthyAfter is how long a connection must have been caught up for the back-off
// to start again from its minimum. A shorter one may be part of the same outage.
const healthyAfter = 10 * time.Second

// onEnded is called at the end of a connection.
func (in *ingest) onEnded(err error) {
	in.reader.cancel(errStopped)
	in.reader.sink.release()
	err = in.noteTooLarge(err)
	in.endResync(err)
	in.reader = nil
	in.received.Store(nil)
	in.progress.stop()
	in.settling.timer.stop() // what the upstream said is void
	in.setLostAt(time.Now())
	reason := reconnectReason(err)
	in.count.reconnects.add(reason, 1)
	in.startOver = in.startOver || reason == "order" || reason == "behind" || reason == "unresumable" || reason == "memory"
	if in.health.Connected && time.Since(in.health.Since) >= healthyAfter {
		in.failures = 0
	}
	in.failures++
	wait := in.config.Backoff.Wait(in.failures, rand.Float64())
	if reason == "memory" {
		wait *= memoryPatience
	}
	in.lastError = cause{reasons[reason], reasons["ended"]}
	if err != nil {
		in.lastError.detail = in.upstreamText(err.Error())
	}
	in.failed(in.lastError, wait)
	in.recordIncident(IncidentReconnect, reason, in.lastError.detail)
	in.logger.Warn("upstream lost", "reason", reason, "error", in.lastError.detail, "retry_in", wait.Round(time.Millisecond).String())
	in.retry.start(wait)
	if unreachable(reason) {
		in.peerBack = in.peers.next()
	}
	switch state := in.log.Status().State; {
	case state == stream.InSync && reason != "memory":
		// An upstream that is back at once is not worth a status. One that comes and
		// goes is: the timer is not postponed.
		if !in.stale.set() {
			in.stale.start(in.config.StaleAfter)
		}
	case state == stream.Priming:
		in.setStatus(stream.Priming, in.lastError)
	default:
		in.setLost()
	}
}

// behindTooLong reports whether the upstream has been behind for too long: a replica
// that lags catches up, a restored upstream does not.
func (in *ingest) behindTooLong(err error) bool {
	if in.behind.IsZero() {
		in.behind = time.Now()
	}
	if time.Since(in.behind) >= in.config.BehindTimeout {
		return true
	}
	in.lastError = cause{reasons["behind"], in.upstreamText(err.Error())}
	in.setLostAt(time.Now())
	in.setStatus(stream.Stale, in.lastError)
	return false
}

func resyncReason(primed, reset bool) string {
	switch {
	case !primed:
		return "initial"
	case reset:
		return "epoch_changed"
	default:
		return "reconnect"
	}
}

func reconnectReason(err error) string {
	switch {
	case err == nil:
		return "ended"
	case errors.Is(err, memory.ErrExceeded):
		return "memory"
	case errors.Is(err, stream.ErrStalled):
		return "stalled"
	case errors.Is(err, stream.ErrInvalid):
		return "invalid"
	case errors.Is(err, stream.ErrOrder):
		return "order"
	case errors.Is(err, stream.ErrBehind):
		return "behind"
	case errors.Is(err, stream.ErrUnresumable):
		return "unresumable"
	default:
		return "error"
	}
}

// Backoff is how long to wait between attempts to reach an upstream: a random
// time up to a bound that doubles with each attempt ("full jitter"), so that
// replicas do not come back in step.
type Backoff struct {
	// Min is the first bound; 100 ms by default.
	Min time.Duration
	// Max is the largest bound; 30 s by default.
	Max time.Duration
}

func (b Backoff) withDefaults() Backoff {
	b.Min = cmp.Or(b.Min, 100*time.Millisecond)
	b.Max = max(cmp.Or(b.Max, 30*time.Second), b.Min)
	return b
}

// Wait returns the time to wait after so many failed attempts, at least half of
// Min so that a broken upstream is never hammered. draw is a random number, at least 0
// and less than 1.
func (b Backoff) Wait(failures int, draw float64) time.Duration {
	b = b.withDefaults()
	bound := b.Max
	if failures < 32 {
		bound = min(b.Max, b.Min<<max(failures-1, 0))
	}
	if bound <= 0 {
		bound = b.Max
	}
	return b.Min/2 + time.Duration(draw*float64(max(bound-b.Min/2, 1)))
}

// peers are the watches of one source, which learn from each other that their upstream is
// back. All methods may be called from any goroutine.
type peers struct {
	mu   sync.Mutex    // guards the following field
	back chan struct{} // closed when one of them has connected
}

func newPeers() *peers { return &peers{back: make(chan struct{})} }

// next returns a channel that is closed when a watch connects from now on.
func (p *peers) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.back
}

// connected is called when a watch has connected.
func (p *peers) connected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.back)
	p.back = make(chan struct{})
}

// peersOf returns the watches of the source with a name; without one, nobody else is among them.
func (r *Registry) peersOf(source string) *peers {
	if source == "" {
		return newPeers()
	}
	p, _ := r.peers.LoadOrStore(source, newPeers())
	return p.(*peers)
}

// unreachable reports whether the reason for which a connection has ended may be gone once
// another watch of the source has one.
func unreachable(reason string) bool {
	return reason == "error" || reason == "ended" || reason == "stalled"
}

// onPeerBack shortens the wait for the next attempt, since another watch of the source has
// connected. It does so once in a while only: what fails for this watch alone is not to be tried
// more often by all that comes and goes.
func (in *ingest) onPeerBack() {
	in.peerBack = in.peers.next()
	now := time.Now()
	wait := time.Duration(rand.Float64() * float64(in.config.Backoff.Min))
	if now.Sub(in.hurried) < healthyAfter || now.Add(wait).After(in.health.NextAttemptAt) {
		return
	}
	in.hurried = now
	in.health.NextAttemptAt = now.Add(wait)
	in.publishHealth()
	in.retry.start(wait)
}
