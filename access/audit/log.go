package audit

import (
	"io"
	"reflect"
	"sync/atomic"
	"time"
)

// Log writes down decisions. It never makes anybody wait: entries wait in a buffer of fixed
// size until they are written. One that does not fit, or cannot be written, is counted as
// lost, and a later line says how many were.
//
// All methods may be called from any goroutine. Record and Enabled of a nil *Log do nothing.
type Log struct {
	// Atomic.
	sink    atomic.Pointer[sink] // nil: nothing is written
	dropped atomic.Uint64        // entries that were lost

	flood flood // locks itself
}

// New returns a log that writes to nothing yet.
func New() *Log { return &Log{} }

// Enabled reports whether entries are written: otherwise nobody needs to make them.
func (l *Log) Enabled() bool { return l != nil && l.sink.Load() != nil }

// Dropped returns how many entries were lost.
func (l *Log) Dropped() uint64 { return l.dropped.Load() }

// Record adds an entry, with the time. What is denied to nobody in particular is written some
// times for each address, and then counted: whoever sends such requests must not fill a disk.
func (l *Log) Record(e Entry) {
	if !l.Enabled() {
		return
	}
	if e.Decision == Denied && e.cheap() && !l.flood.admits(e, l.sum) {
		return
	}
	l.write(e)
}

func (l *Log) write(e Entry) {
	e = e.bounded()
	e.Time = time.Now()
	for s := l.sink.Load(); s != nil && !s.add(e); s = l.sink.Load() {
	}
}

// sum writes what was only counted.
func (l *Log) sum() {
	for _, e := range l.flood.sums() {
		l.write(e)
	}
}

// SetOutput makes the log write to w from now on, one or several whole lines at a time; nil:
// to nothing. What has been recorded so far still goes to the output before it, which is then
// closed if it can be.
func (l *Log) SetOutput(w io.Writer) {
	if before := l.sink.Load(); before != nil && same(before.out, w) {
		return
	}
	l.sum()
	var next *sink
	if w != nil {
		next = &sink{out: w, dropped: &l.dropped}
	}
	if before := l.sink.Swap(next); before != nil {
		before.retire()
	}
}

// same reports whether two outputs are the same one.
func same(a, b io.Writer) bool {
	one, other := reflect.ValueOf(a), reflect.ValueOf(b)
	return one.IsValid() && other.IsValid() && one.Comparable() && other.Comparable() && a == b
}

// Close writes what has been recorded, and closes the output if it can be. It waits for that
// no longer than patience.
func (l *Log) Close(patience time.Duration) {
	l.sum()
	before := l.sink.Swap(nil)
	if before == nil {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-before.retire():
	case <-timer.C:
	}
}
