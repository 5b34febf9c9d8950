package watch

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/watchtide/watchtide/internal/memory"
)

const (
	// commitMemory is for how long the times of commits are kept.
	commitMemory = time.Minute
	// commitSpacing is the least time between two commits whose times are kept.
	commitSpacing = 25 * time.Millisecond
	// mostCommits bounds the memory of a watch, to about 38 KiB.
	mostCommits = int(commitMemory/commitSpacing) + 1
	// fewestCommits is for how many commits there is room at first.
	fewestCommits = 16
	// unaskedFor is how long nothing may have been asked before nothing is kept any more.
	unaskedFor = 5 * time.Minute
)

// commitBytes is what is counted for a commit.
const commitBytes = int64(unsafe.Sizeof(commit{}))

// recentCommits keeps when the newest revisions of a watch became visible. It does so from the
// first question until there has been none for unaskedFor, so that a watch about which nobody
// asks keeps nothing, and its commits take no lock.
//
// find may be called from any goroutine, and the other methods by ingest.
type recentCommits struct {
	// Static after construction.
	account *memory.Account // counts what is kept; its methods for logs

	// Atomic.
	wanted atomic.Bool

	mu      sync.Mutex // guards the following fields
	start   time.Time  // from which commits count their time: that of the first question
	asked   bool       // since the last call of rest
	commits []commit   // by rising revision
	newest  uint64
}

// commit is one commit, and stands for those that follow it within commitSpacing.
type commit struct {
	revision uint64
	at       time.Duration
}

// add records that a revision became visible.
func (r *recentCommits) add(revision uint64, now time.Time) {
	if !r.wanted.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest = revision
	at := now.Sub(r.start)
	if n := len(r.commits); n > 0 && at-r.commits[n-1].at < commitSpacing {
		return
	}
	r.forget(at - commitMemory)
	if r.makeRoom() {
		r.commits = append(r.commits, commit{revision, at})
	}
}

// makeRoom makes room for another commit: in more memory, or in the place of the oldest one. It
// returns false if there is no memory at all.
func (r *recentCommits) makeRoom() bool {
	has := cap(r.commits)
	if len(r.commits) < has {
		return true
	}
	more := min(max(2*has, fewestCommits), mostCommits) - has
	if more > 0 && r.account.Keep(int64(more)*commitBytes) {
		r.commits = append(make([]commit, 0, has+more), r.commits...)
		return true
	}
	r.drop(min(1, has))
	return has > 0
}

// forget drops the commits before a time.
func (r *recentCommits) forget(before time.Duration) {
	r.drop(sort.Search(len(r.commits), func(i int) bool { return r.commits[i].at >= before }))
}

// drop drops the oldest n commits.
func (r *recentCommits) drop(n int) {
	if n > 0 {
		r.commits = append(r.commits[:0], r.commits[n:]...)
	}
}

// clear forgets everything: revisions of another order follow, or none.
func (r *recentCommits) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.account.Keep(-int64(cap(r.commits)) * commitBytes)
	r.commits, r.newest = nil, 0
}

// rest forgets everything, and keeps nothing until the next question, if none was asked since the
// last call. asked: there was one.
func (r *recentCommits) rest() (asked bool) {
	r.mu.Lock()
	asked, r.asked = r.asked, false
	r.wanted.Store(asked)
	r.mu.Unlock()
	if !asked {
		r.clear()
	}
	return asked
}

// find returns when a revision became visible, or up to commitSpacing before.
func (r *recentCommits) find(revision uint64, now time.Time) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.start.IsZero() {
		r.start = now
	}
	r.asked = true
	r.wanted.Store(true)
	next := sort.Search(len(r.commits), func(i int) bool { return r.commits[i].revision > revision })
	if next == 0 || revision > r.newest {
		return time.Time{}, false
	}
	at := r.start.Add(r.commits[next-1].at)
	return at, now.Sub(at) <= commitMemory
}

// CommittedAt returns when a revision of the last minute became visible here, or up to 25 ms
// before. Nothing is known of revisions before the first call, nor of those that no memory was
// left for.
func (w *Watch) CommittedAt(revision uint64) (time.Time, bool) {
	if w.recent == nil { // of a view, which has it a moment later than its watch
		of := w.viewOf.Load()
		if of == nil {
			return time.Time{}, false
		}
		return of.CommittedAt(revision)
	}
	return w.recent.find(revision, time.Now())
}
