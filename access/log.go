package access

import (
	"io"
	"reflect"
	"sync/atomic"
	"time"
)

// AuditLog records decisions. It never blocks: entries wait in a buffer of limited size until they
// are written. An entry that does not fit, or cannot be written, is lost. Lost entries are
// counted, and a later line has their number.
//
// All methods may be called from any goroutine. Record and Enabled of a nil *Log do nothing.
type AuditLog struct {
	// Atomic.
	sink    atomic.Pointer[sink] // nil: nothing is written
	dropped atomic.Uint64        // entries that were lost

	flood flood // locks itself
}

// NewAuditLog returns a log without an output.
func NewAuditLog() *AuditLog { return &AuditLog{} }

// Enabled reports whether the log has an output. Otherwise no entries need to be made.
func (l *AuditLog) Enabled() bool { return l != nil && l.sink.Load() != nil }

// Dropped returns how many entries were lost.
func (l *AuditLog) Dropped() uint64 { return l.dropped.Load() }

// Record adds an entry, with the time. Denials without a principal are written a few times for
// each address, and then only counted, so that nobody can fill the disk with them.
func (l *AuditLog) Record(e AuditEntry) {
	if !l.Enabled() {
		return
	}
	if e.Decision == Denied && e.cheap() && !l.flood.admits(e, l.sum) {
		return
	}
	l.write(e)
}

func (l *AuditLog) write(e AuditEntry) {
	e = e.bounded()
	e.Time = time.Now()
	for s := l.sink.Load(); s != nil && !s.add(e); s = l.sink.Load() {
	}
}

// sum writes the entries for what was only counted.
func (l *AuditLog) sum() {
	for _, e := range l.flood.sums() {
		l.write(e)
	}
}

// SetOutput makes the log write to w from now on, one or several whole lines at a time; nil: to
// nothing. Earlier entries still go to the former output, which is closed after that if it is
// an io.Closer.
func (l *AuditLog) SetOutput(w io.Writer) {
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

// same reports whether two outputs are the same.
func same(a, b io.Writer) bool {
	one, other := reflect.ValueOf(a), reflect.ValueOf(b)
	return one.IsValid() && other.IsValid() && one.Comparable() && other.Comparable() && a == b
}

// Close writes all entries, and closes the output if it is an io.Closer. It waits no longer
// than patience.
func (l *AuditLog) Close(patience time.Duration) {
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
