package watch

import (
	"sort"
	"sync"
	"time"
)

const (
	// commitMemory is for how long the times of commits are kept.
	commitMemory = time.Minute
	// commitSpacing is the least time between two commits whose times are kept. With
	// commitMemory it bounds the memory of a watch: 2,400 commits, or about 80 KiB.
	commitSpacing = 25 * time.Millisecond
)

// recentCommits keeps when the newest revisions of a watch became visible. It does so from the
// first question on, so that a watch about which nobody asks keeps nothing.
//
// All methods may be called from any goroutine.
type recentCommits struct {
	mu      sync.Mutex // guards the following fields
	wanted  bool
	commits []commit // by rising revision
	newest  uint64
}

// commit is one commit, and stands for those that follow it within commitSpacing.
type commit struct {
	revision uint64
	at       time.Time
}

// add records that a revision became visible.
func (r *recentCommits) add(revision uint64, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.wanted {
		return
	}
	r.newest = revision
	if n := len(r.commits); n > 0 && at.Sub(r.commits[n-1].at) < commitSpacing {
		return
	}
	r.forget(at.Add(-commitMemory))
	r.commits = append(r.commits, commit{revision, at})
}

// clear forgets everything: revisions of another order follow.
func (r *recentCommits) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commits, r.newest = nil, 0
}

// forget drops the commits before a time.
func (r *recentCommits) forget(before time.Time) {
	old := sort.Search(len(r.commits), func(i int) bool { return !r.commits[i].at.Before(before) })
	if old > 0 {
		r.commits = append(r.commits[:0], r.commits[old:]...)
	}
}

// find returns when a revision became visible, or up to commitSpacing before.
func (r *recentCommits) find(revision uint64, now time.Time) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = true
	next := sort.Search(len(r.commits), func(i int) bool { return r.commits[i].revision > revision })
	if next == 0 || revision > r.newest {
		return time.Time{}, false
	}
	at := r.commits[next-1].at
	return at, now.Sub(at) <= commitMemory
}

// CommittedAt returns when a revision of the last minute became visible here, or up to 25 ms
// before. Nothing is known of revisions before the first call.
func (w *Watch) CommittedAt(revision uint64) (time.Time, bool) {
	return w.ingest.recent.find(revision, time.Now())
}
