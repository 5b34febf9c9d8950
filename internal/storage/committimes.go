package storage

import (
	"sort"
	"time"
	"unsafe"
)

// mostTimes is the most times that are kept. When there are as many, the older half is forgotten.
const mostTimes = 1024

// Least and greatest distance of two times that are kept.
const (
	leastSpacing    = 25 * time.Millisecond
	greatestSpacing = time.Second
)

// CommitSpacing returns how far apart times have to be for a log that remembers for so long: a table
// that is full reaches at least half as far back, unless maxAge is long.
func CommitSpacing(maxAge time.Duration) time.Duration {
	return min(max(maxAge/mostTimes, leastSpacing), greatestSpacing)
}

// CommitTimes says when entries became visible. The zero value knows nothing.
//
// A value is immutable. Add belongs to the log's writer, which adds to the newest value only.
type CommitTimes []stretchOfTimes

// stretchOfTimes is some consecutive commits.
type stretchOfTimes struct {
	from uint64 // seq of the first entry
	at   int64  // of the first commit, in nanoseconds since 1970; 0: not known
}

// Add returns the times with those of the entries from a seq on, which became visible at a time,
// unless it is not known when they were made. A commit less than spacing after the last one that
// was kept counts to it.
func (t CommitTimes) Add(from uint64, at time.Time, known bool, spacing time.Duration) CommitTimes {
	one := stretchOfTimes{from: from}
	if known {
		one.at = at.UnixNano()
	}
	if n := len(t); n > 0 && t[n-1].includes(one, spacing) {
		return t
	}
	if len(t) == mostTimes {
		t = append(make(CommitTimes, 0, mostTimes), t[mostTimes/2:]...)
	}
	return append(t, one)
}

// includes reports whether a commit counts to the stretch.
func (s stretchOfTimes) includes(o stretchOfTimes, spacing time.Duration) bool {
	if s.at == 0 || o.at == 0 {
		return s.at == o.at
	}
	return o.at >= s.at && o.at-s.at < int64(spacing)
}

// Of returns when the entry with a seq became visible, or up to the spacing before.
func (t CommitTimes) Of(seq uint64) (at time.Time, known bool) {
	next := sort.Search(len(t), func(i int) bool { return t[i].from > seq })
	if next == 0 || t[next-1].at == 0 {
		return time.Time{}, false
	}
	return time.Unix(0, t[next-1].at), true
}

// Bytes is the memory that the times hold.
func (t CommitTimes) Bytes() int64 { return int64(cap(t)) * int64(unsafe.Sizeof(stretchOfTimes{})) }
