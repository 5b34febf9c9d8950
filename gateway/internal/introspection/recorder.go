package introspection

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/watchtide/watchtide/stream/watch"
)

// setBack is how far the clock may go back, in seconds, before the hours are dropped: their times
// would come a second time.
const setBack = 2

// Recorder keeps the hours of the watches and templates of a registry. A template has one hour,
// for all its watches. A nil Recorder counts nothing.
//
// All methods may be called from any goroutine.
type Recorder struct {
	// Static after construction.
	registry *watch.Registry
	lags     func() map[string]uint64 // the greatest lag of a subscriber, by watch

	tallies sync.Map // of *Tally, by entry of the configuration

	mu      sync.Mutex // guards the following fields
	entries map[string]*entry
	hours   int       // that entries have
	total   *hour     // of all entries together; nil: nothing is recorded
	first   int64     // second that was recorded; 0: none
	second  int64     // the newest one
	last    time.Time // when it was
}

// NewRecorder returns a Recorder for a registry. lags returns the greatest lag of a subscriber, by watch.
func NewRecorder(registry *watch.Registry, lags func() map[string]uint64) *Recorder {
	return &Recorder{registry: registry, lags: lags, entries: map[string]*entry{}}
}

// Tally returns what counts for a watch, or for a part of it.
func (r *Recorder) Tally(w *watch.Watch) *Tally {
	if t := w.Template(); t != nil {
		return r.TallyOf(t.Name())
	}
	return r.TallyOf(w.Name())
}

// TallyOf returns what counts for an entry of the configuration, which must exist.
func (r *Recorder) TallyOf(entry string) *Tally {
	if r == nil {
		return nil
	}
	if t, found := r.tallies.Load(entry); found {
		return t.(*Tally)
	}
	t, _ := r.tallies.LoadOrStore(entry, &Tally{})
	return t.(*Tally)
}

// Run records each second until ctx ends. The hours stay until Drop.
func (r *Recorder) Run(ctx context.Context) {
	timer := time.NewTimer(untilNextSecond(time.Now()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		r.Record(time.Now())
		timer.Reset(untilNextSecond(time.Now()))
	}
}

func untilNextSecond(now time.Time) time.Duration {
	return time.Second - time.Duration(now.Nanosecond())
}

// early is how much too soon, by the wall clock, a timer may be.
const early = 100 * time.Millisecond

// Record records the second that ends now.
func (r *Recorder) Record(now time.Time) {
	lags := r.lags() // asks the pumps, which may take a while
	r.mu.Lock()
	defer r.mu.Unlock()
	second := now.Add(early).Unix() - 1
	if second <= r.second && r.second-second <= setBack {
		return // the counts are added to those of the next second
	}
	if second < r.second {
		r.drop()
	}
	begins := r.total == nil
	if begins {
		r.total = &hour{}
	}
	r.follow()
	r.allot(now)
	sum := counts{seconds: now.Sub(r.last).Seconds()}
	for _, e := range r.entries {
		c := counts{seconds: sum.seconds}
		e.take(&c, r.last, lags)
		sum.beside(&c)
		if e.hour != nil && !begins {
			e.hour.add(second, &c)
		}
	}
	if !begins { // what was counted before belongs to no interval
		r.total.add(second, &sum)
		r.first = cmp.Or(r.first, second)
	}
	r.second, r.last = second, now
}

// follow makes the entries those of the configuration.
func (r *Recorder) follow() {
	there := make(map[string]bool, len(r.entries))
	for _, w := range r.registry.Watches() {
		if w.Template() == nil {
			there[w.Name()] = true
			r.enter(w.Name()).replace(w, nil)
		}
	}
	for _, t := range r.registry.Templates() {
		there[t.Name()] = true
		r.enter(t.Name()).replace(nil, t)
	}
	for name, e := range r.entries {
		if !there[name] {
			r.take(e, "")
			delete(r.entries, name)
		}
	}
	r.tallies.Range(func(name, _ any) bool {
		if !there[name.(string)] {
			r.tallies.Delete(name)
		}
		return true
	})
}

func (r *Recorder) enter(name string) *entry {
	e := r.entries[name]
	if e == nil {
		e = &entry{name: name}
		r.entries[name] = e
	}
	e.tally = r.TallyOf(name)
	return e
}

// Drop frees all hours.
func (r *Recorder) Drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
}

func (r *Recorder) drop() {
	for _, e := range r.entries {
		r.take(e, "")
	}
	clear(r.entries)
	r.total, r.first, r.second = nil, 0, 0
}
