package watch

import (
	"math/rand/v2"
	"sync"
	"time"
)

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
