package watch

import "time"

// alarm is a timer that may be off. It belongs to one goroutine.
type alarm struct{ timer *time.Timer }

func (a *alarm) start(d time.Duration) {
	a.stop()
	a.timer = time.NewTimer(d)
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

func (a *alarm) set() bool { return a.timer != nil }

// C is nil, and so blocks forever while the alarm is off.
func (a *alarm) C() <-chan time.Time {
	if a.timer == nil {
		return nil
	}
	return a.timer.C
}
