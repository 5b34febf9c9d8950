package shard

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
)

// wheel is a timer for very many deadlines, most of which never expire: a ring of
// buckets, each one tick wide (Varghese and Lauck, "Hashed and Hierarchical Timing
// Wheels", 1987). It only returns which keys to check, at most a tick late. That
// check notices a deadline that was put off, so nothing is ever removed.
//
// Owned by one shard.
type wheel struct {
	buckets [wheelBuckets][]uint64 // keys
	at      int64                  // the tick that was last checked
	waiting int                    // keys in total
}

const (
	wheelTick    = 50 * time.Millisecond
	wheelBuckets = 1 << 11 // about 100 s; later deadlines go around
)

func tickOf(t time.Time) int64 { return introspection.Nanos(t) / int64(wheelTick) }

func newWheel(now time.Time) *wheel { return &wheel{at: tickOf(now)} }

// add schedules a check of key at the given time, or earlier if that is very late.
// It returns the time of the check, at most a tick early.
func (w *wheel) add(key uint64, due time.Time) time.Time {
	// The tick after, so that the deadline has passed when it is checked.
	tick := min(max(tickOf(due)+1, w.at+1), w.at+wheelBuckets-1)
	b := &w.buckets[tick%wheelBuckets]
	*b = append(*b, key)
	w.waiting++
	return introspection.FromNanos(tick * int64(wheelTick))
}

// due appends the keys to check now.
func (w *wheel) due(dst []uint64, now time.Time) []uint64 {
	for tick := tickOf(now); w.at < tick; {
		w.at = max(w.at+1, tick-wheelBuckets+1)
		b := &w.buckets[w.at%wheelBuckets]
		dst = append(dst, *b...)
		w.waiting -= len(*b)
		*b = (*b)[:0]
	}
	return dst
}

// next returns when something may be due; zero: never.
func (w *wheel) next() time.Time {
	if w.waiting == 0 {
		return time.Time{}
	}
	for tick := w.at + 1; ; tick++ {
		if len(w.buckets[tick%wheelBuckets]) > 0 {
			return introspection.FromNanos((tick + 1) * int64(wheelTick))
		}
	}
}
