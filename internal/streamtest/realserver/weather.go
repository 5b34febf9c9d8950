package realserver

import (
	"context"
	"time"
)

// weather is the state that applies to all connections. Static after construction: a
// change makes a new one, and closes changed of the previous one.
type weather struct {
	stalled bool
	delay   time.Duration
	rate    int // bytes a second; 0: as fast as they come
	changed chan struct{}
}

func newWeather() *weather { return &weather{changed: make(chan struct{})} }

func (p *Proxy) change(set func(*weather)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.weather.Load()
	next := *old
	set(&next)
	next.changed = make(chan struct{})
	p.weather.Store(&next)
	close(old.changed)
}

// wait waits for d, or forever if d is negative, or until the weather changes. It
// returns false if the connection ended meanwhile.
func (w *weather) wait(ctx context.Context, d time.Duration) bool {
	var due <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.changed:
	case <-due:
	}
	return true
}

// pass waits until bytes read at a time may be forwarded. It returns false if the
// connection ended meanwhile.
func (p *Proxy) pass(ctx context.Context, read time.Time) bool {
	for ctx.Err() == nil {
		w := p.weather.Load()
		late := time.Until(read.Add(w.delay))
		switch {
		case w.stalled:
			late = -1
		case w.delay == 0 || late <= 0:
			return true
		}
		if !w.wait(ctx, late) {
			return false
		}
	}
	return false
}

// piece returns how many of n bytes may be written at once, and how long to wait
// afterwards.
func (w *weather) piece(n int) (int, time.Duration) {
	if w.rate == 0 {
		return n, 0
	}
	n = min(n, max(w.rate/20, 1))
	return n, time.Duration(n) * time.Second / time.Duration(w.rate)
}
