package signal

import (
	"slices"
	"sync/atomic"
)

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
