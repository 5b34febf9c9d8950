package log

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/log/internal/listing"
	"github.com/watchtide/watchtide/internal/log/internal/pin"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/signal"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Retention bounds how far back a log can resume readers. Upserts need no history:
// every live resource is there anyway. What is bounded is the memory of deletes, and of
// superseded values for readers of a part of the log. The zero value of a field is its
// default.
type Retention struct {
	// MaxAge is how long deletes and superseded values are remembered; 10 minutes by
	// default.
	MaxAge time.Duration `yaml:"max_age"`
	// MaxDeletes is how many deletes are remembered; 100,000 by default.
	MaxDeletes int `yaml:"max_deletes"`
	// MaxBytes is how many bytes of deletes are remembered; 16 MiB by default. Superseded
	// values may have what deletes leave, but only a small part of the log; see Writer.mark.
	MaxBytes int64 `yaml:"max_bytes"`
}

// WithDefaults returns h with the default of each field that is not set.
func (h Retention) WithDefaults() Retention {
	h.MaxAge = cmp.Or(h.MaxAge, 10*time.Minute)
	h.MaxDeletes = cmp.Or(h.MaxDeletes, 100_000)
	h.MaxBytes = cmp.Or(h.MaxBytes, 16<<20)
	return h
}

// Config configures a log.
type Config struct {
	// Watch is the name of the watch; it is in every frame.
	Watch string
	// History bounds the memory of deletes and superseded values.
	History Retention

	// GoesOn reports whether another process will go on with the log: positions then name its run,
	// so that it can tell which readers have nothing else.
	GoesOn bool
	// Account counts what the log holds; nil: nothing limits it.
	Account *memory.Account
	// Counted, if not nil, is called with both differences when subscriptions are
	// opened or closed, and when the number of readers that they serve changes. It is
	// called by any goroutine.
	Counted func(subscriptions, readers int)
}

// Log is the shared primed cache of one watch: a compacting, multi-version log
// in revision order. It holds the newest entry of each key, and tombstones for
// the history that resuming needs.
//
// Entries live in segments of about 64 KiB: one slab with ready-made frames and a
// small table. A new entry for a key is appended at the tail; the old one is marked
// with the seq that superseded it. So a reader at seq T sees what is not newer than
// T and was not superseded at T, without a copy or a lock, however long it takes.
// Snapshot, resume, live and catching up after being slow are one operation: give
// what is newer than the cursor, as of the head (see Subscription).
//
// Only its Writer can write a log. The methods of Log may be called by any number of
// goroutines.
type Log struct {
	// Static after construction.
	watch   string
	framing *storage.Format // shared with the log that this one has a part of
	account *memory.Account
	counted func(subscriptions, readers int)
	isView  bool // of another log; see View
	from    *Log // the log that this one is derived from; nil: it is not. See Derived
	goesOn  bool // see Config.GoesOn

	// Published by the writer, read by all through newest.
	head atomic.Pointer[storage.Version]
	// How far the view of another log is fed; nil: it is no part, or is fed by itself.
	fed atomic.Pointer[Fed]
	// A reader of the part waits for the next state, whatever it has.
	wanted atomic.Bool
	// What is called beside Changed.
	notified signal.Listeners
	// The versions that readers pin.
	pins *pin.Set
	// Results that listings and counts share.
	listings listing.Cache
	// The states that readers verify what they hold with.
	digested digestedStates
	// The states that readers with an interval are sent.
	releases releases
}

// Changed is closed when there is something new: a change, or another status. Get it
// before looking, and nothing is missed.
func (l *Log) Changed() <-chan struct{} { return l.newest().Changed.Sent() }

// Notify has f called whenever the channel of Changed is closed, until stop is called. It is
// for readers of very many logs, which cannot wait for each. f is called by the log's
// writer, and must return at once.
func (l *Log) Notify(f func()) (stop func()) { return l.notified.Add(f) }

// Notified calls what Notify was given: the log has changed, or has ended.
func (l *Log) Notified() { l.notified.Call() }

// Status returns the freshness of the watch.
func (l *Log) Status() stream.Status { return *l.newest().Status }
