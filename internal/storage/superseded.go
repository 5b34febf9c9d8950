package storage

import "time"

// Superseded is how many bytes were superseded recently, in a few stretches of commits: it can
// forget the oldest, and does not know single entries. The zero value is empty.
//
// Owned by the log's writer.
type Superseded struct {
	stretches []stretch // oldest first, at most most
	bytes     int64     // of all
}

// stretch is some consecutive commits.
type stretch struct {
	after uint64 // seq of the last entry before them
	began time.Time
	bytes int64 // that they superseded
}

// most is the most stretches that are distinguished.
const most = 32

// Add records that a commit at now superseded so many bytes; after is the seq of the last
// entry before it. Stretches are much shorter than maxAge.
func (r *Superseded) Add(after uint64, bytes int64, now time.Time, maxAge time.Duration) {
	if bytes == 0 {
		return
	}
	if r.endsStretch(now, maxAge) {
		r.begin(stretch{after: after, began: now})
	}
	r.stretches[len(r.stretches)-1].bytes += bytes
	r.bytes += bytes
}

// endsStretch reports whether the newest stretch is long enough.
func (r *Superseded) endsStretch(now time.Time, maxAge time.Duration) bool {
	n := len(r.stretches)
	if n == 0 {
		return true
	}
	newest := &r.stretches[n-1]
	return newest.bytes >= r.bytes/(most/2) || now.Sub(newest.began) >= maxAge/most
}

// begin begins a stretch. If there are too many, two become one.
func (r *Superseded) begin(s stretch) {
	if len(r.stretches) == most {
		r.join(r.smallestPair())
	}
	r.stretches = append(r.stretches, s)
}

// smallestPair is the index of the first of the two neighbors with the fewest bytes.
func (r *Superseded) smallestPair() (first int) {
	fewest := r.bytes
	for i := 1; i < len(r.stretches); i++ {
		if n := r.stretches[i-1].bytes + r.stretches[i].bytes; n < fewest {
			first, fewest = i-1, n
		}
	}
	return first
}

// join makes one stretch of the i-th and the next one.
func (r *Superseded) join(i int) {
	r.stretches[i].bytes += r.stretches[i+1].bytes
	r.stretches = append(r.stretches[:i+1], r.stretches[i+2:]...)
}

// Bytes is how many bytes were superseded after the mark.
func (r *Superseded) Bytes() int64 { return r.bytes }

// Mark is the seq after which everything superseded is recent: head, the newest seq, if
// nothing is.
func (r *Superseded) Mark(head uint64) uint64 {
	if len(r.stretches) == 0 {
		return head
	}
	return r.stretches[0].after
}

// Forget raises the mark by one stretch. There must be one.
func (r *Superseded) Forget() {
	r.bytes -= r.stretches[0].bytes
	r.stretches = r.stretches[:copy(r.stretches, r.stretches[1:])]
}

// ForgetBefore forgets the stretches that began before a time.
func (r *Superseded) ForgetBefore(t time.Time) {
	for len(r.stretches) > 0 && r.stretches[0].began.Before(t) {
		r.Forget()
	}
}
