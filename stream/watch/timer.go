package watch

import "time"

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
