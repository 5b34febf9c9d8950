package watch

import (
	"time"
)

const (
	// settleFreely is how many changes of the freshness that an upstream reports of itself are
	// published at once.
	settleFreely = 4
	// settleFirst is the shortest time between two changes after them.
	settleFirst = 50 * time.Millisecond
	// settleMost is the longest. It is shorter than the heartbeat of a subscriber, which
	// is thus told of no wrong freshness for longer than that.
	settleMost = 10 * time.Second
)

// settling limits how often the freshness changes that an upstream reports of itself. The
// first changes are published at once. Then the time until the next one doubles while there are
// more, and the last one counts; after a while without a change they are free again.
type settling struct {
	timer timer     // of the postponed change
	next  time.Time // the earliest time of the next change
	wait  time.Duration
	free  int // changes that need not wait
}

// postpones reports whether a change must wait for the timer. One that need not is counted.
func (s *settling) postpones(now time.Time) bool {
	if left := s.next.Sub(now); left > 0 {
		if !s.timer.set() {
			s.timer.start(left)
		}
		return true
	}
	s.timer.stop()
	if now.Sub(s.next) >= settleMost {
		s.free, s.wait = settleFreely, settleFirst
	}
	if s.free > 0 {
		s.free--
		s.next = now
		return false
	}
	s.next = now.Add(s.wait)
	s.wait = min(2*s.wait, settleMost)
	return false
}

// timer is a time.Timer that may be off. It belongs to one goroutine.
type timer struct{ timer *time.Timer }

func (t *timer) start(d time.Duration) {
	t.stop()
	t.timer = time.NewTimer(d)
}

func (t *timer) stop() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

func (t *timer) set() bool { return t.timer != nil }

// C is nil, and so blocks forever while the timer is off.
func (t *timer) C() <-chan time.Time {
	if t.timer == nil {
		return nil
	}
	return t.timer.C
}
