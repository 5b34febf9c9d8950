// Package signal tells any number of goroutines, or functions, that something has happened.
package signal

import (
	"slices"
	"sync/atomic"
)

// Signal is sent once. Its channel is made when somebody waits for it: there may be very
// many signals for which nobody does. The zero value was not sent. All methods may be
// called from any goroutine.
type Signal struct {
	channel atomic.Value // of type chan struct{}
}

// sent is the channel of all signals that were sent.
var sent = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Send closes the channel. It returns false if that was done before.
func (s *Signal) Send() (first bool) {
	c, _ := s.channel.Swap(sent).(chan struct{})
	if c != nil && c != sent {
		close(c)
	}
	return c != sent
}

// Sent returns a channel that is closed once the signal is sent.
func (s *Signal) Sent() <-chan struct{} {
	if s.channel.Load() == nil {
		s.channel.CompareAndSwap(nil, make(chan struct{}))
	}
	return s.channel.Load().(chan struct{})
}

// WasSent reports whether the signal was sent.
func (s *Signal) WasSent() bool { return s.channel.Load() == any(sent) }

// Listeners is the functions to call. Its zero value is empty; all methods may be called from
// any goroutine.
type Listeners struct {
	all atomic.Pointer[[]*func()] // never modified, only replaced
}

// Add has f called by each Call, until stop is called.
func (l *Listeners) Add(f func()) (stop func()) {
	l.replace(func(all []*func()) []*func() { return append(all, &f) })
	return func() {
		l.replace(func(all []*func()) []*func() {
			return slices.DeleteFunc(all, func(one *func()) bool { return one == &f })
		})
	}
}

func (l *Listeners) replace(change func([]*func()) []*func()) {
	for {
		old := l.all.Load()
		var all []*func()
		if old != nil {
			all = slices.Clone(*old)
		}
		if all = change(all); l.all.CompareAndSwap(old, &all) {
			return
		}
	}
}

// Call calls the functions.
func (l *Listeners) Call() {
	if all := l.all.Load(); all != nil {
		for _, f := range *all {
			(*f)()
		}
	}
}
