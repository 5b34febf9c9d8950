package journal

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

var (
	watchesBucket = []byte("watches")
	recordKey     = []byte("watch")
	entriesBucket = []byte("entries")
	deletesBucket = []byte("deletes")
)

// record is what the file says about a watch.
type record struct {
	log.Record
	// Source identifies what the watch follows: what is kept of another source is not used.
	Source string `json:"source"`
	// Whole reports whether the entries are those of the log at the revision. It is false while they
	// are written in several transactions.
	Whole bool `json:"whole"`
	// Ended reports whether nothing was committed after the record.
	Ended   bool      `json:"ended"`
	Written time.Time `json:"written"`
	Deletes tally     `json:"deletes"`
	// Aliases are the names of revision orders that the source broke.
	Aliases map[string]string `json:"aliases,omitempty"`
}

// tally tells that the deletes are complete: each has a checksum of its own, which says nothing about
// those that are missing. For resources, the digest tells.
type tally struct {
	Count uint64 `json:"count"`
	Sum   uint64 `json:"sum"`
}

func (t *tally) add(sum uint32)    { t.Count, t.Sum = t.Count+1, t.Sum+uint64(sum) }
func (t *tally) remove(sum uint32) { t.Count, t.Sum = t.Count-1, t.Sum-uint64(sum) }

// Watch keeps the log of one watch. It implements [watch.Journal]. Its methods are called by one goroutine
// at a time, the ingest of the watch.
type Watch struct {
	// Static after construction.
	journal      *Journal
	name, source string

	aliases atomic.Pointer[map[string]string]

	// Guarded by the lock of the journal.
	log        *log.Log
	stop       func() // ends the notification of the journal
	stored     record // what the file has
	seq        uint64 // of the log that the file has
	generation uint64
	unfit      bool // the log has what the file cannot have
}

// Watch returns what keeps a watch. source identifies what it follows.
func (j *Journal) Watch(name, source string) *Watch {
	return &Watch{journal: j, name: name, source: source}
}

// Begin implements [watch.Journal].
func (w *Watch) Begin(l *log.Log) watch.Kept {
	j := w.journal
	j.waiting.Add(1)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting.Add(-1)
	if j.failed.Load() || j.watches[w.name] != nil {
		return watch.KeptNothing
	}
	kept, why := w.begin()
	if why != "" {
		j.config.Logger.Warn("what the journal has of a watch is not used", "watch", w.name, "because", why)
	}
	if j.failed.Load() {
		return watch.KeptNothing
	}
	w.log, w.stop = l, l.Notify(j.notify)
	j.watches[w.name] = w
	return kept
}

// begin reads the record, and marks what the file has as not ended.
func (w *Watch) begin() (kept watch.Kept, why string) {
	j := w.journal
	var found *record
	err := j.file.View(func(tx *disk.Tx) (err error) {
		found, err = readRecord(tx, w.name)
		return err
	})
	switch age := time.Duration(0); {
	case err != nil:
		return watch.KeptNothing, err.Error()
	case found == nil:
		return watch.KeptNothing, ""
	case found.Source != w.source:
		return watch.KeptNothing, "it is of another configuration of the watch or its source"
	case !found.Whole:
		return watch.KeptNothing, "the process ended while a large state was being written"
	default:
		if age = time.Since(found.Written); age > j.config.MaxAge || age < -time.Hour {
			return watch.KeptNothing, fmt.Sprintf("it was written at %s, and state.max_age is %v", found.Written.Format(time.RFC3339), j.config.MaxAge)
		}
	}
	kept = watch.KeptLost
	if found.Ended {
		kept = watch.KeptWhole
		found.Ended = false
		if err := j.update(func(tx *disk.Tx) error { return putRecord(tx, w.name, found) }); err != nil {
			j.fail(err)
			return watch.KeptNothing, ""
		}
	}
	w.stored = *found
	w.stored.Whole = false // unless it is recalled
	w.aliases.Store(&found.Aliases)
	return kept, ""
}

// Aliases implements [watch.Journal].
func (w *Watch) Aliases() map[string]string {
	if of := w.aliases.Load(); of != nil {
		return maps.Clone(*of)
	}
	return nil
}

// SetAliases implements [watch.Journal].
func (w *Watch) SetAliases(of map[string]string) {
	of = maps.Clone(of)
	w.aliases.Store(&of)
}

// Recall implements [watch.Journal].
func (w *Watch) Recall(fn func(log.Record, log.RecordedEntries) error) error {
	j := w.journal
	var found *record
	err := j.file.View(func(tx *disk.Tx) (err error) {
		if found, err = readRecord(tx, w.name); err != nil || found == nil {
			return err
		}
		all, err := readEntries(tx, w.name, found)
		if err != nil {
			return err
		}
		return fn(found.Record, all.recorded())
	})
	if err == nil && found == nil {
		err = fmt.Errorf("the journal has nothing of the watch")
	}
	if err != nil {
		j.config.Logger.Warn("what the journal has of a watch is not used", "watch", w.name, "because", err.Error())
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	state := w.log.Snapshot()
	w.stored, w.seq, w.generation = *found, state.Seq(), state.Generation()
	return nil
}

// End implements [watch.Journal].
func (w *Watch) End() {
	done := make(chan struct{})
	w.journal.waiting.Add(1)
	go func() {
		defer close(done)
		defer w.journal.waiting.Add(-1)
		w.end()
	}()
	timer := time.NewTimer(endWithin)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		w.journal.config.Logger.Error("the last changes of a watch are not in the journal: its disk does not answer", "watch", w.name)
	}
}

func (w *Watch) end() {
	j := w.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.watches[w.name] != w {
		return
	}
	w.stop()
	delete(j.watches, w.name)
	if j.failed.Load() {
		return
	}
	p := w.newest()
	if p == nil {
		return
	}
	p.ends = time.Now().Add(endWithin)
	if p.large {
		j.writeLarge(p)
	} else {
		j.writeSmall([]*part{p})
	}
}

func readRecord(tx *disk.Tx, name string) (*record, error) {
	all := tx.Bucket(watchesBucket)
	if all == nil || all.Bucket([]byte(name)) == nil {
		return nil, nil
	}
	b := all.Bucket([]byte(name))
	raw, err := b.Get(recordKey)
	if err != nil || raw == nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(raw, r); err != nil || r.Epoch == "" {
		return nil, b.Damaged(recordKey, "it does not describe a watch")
	}
	return r, nil
}

func putRecord(tx *disk.Tx, name string, r *record) error {
	b, err := openBucket(tx, name)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return b.Put(recordKey, raw)
}

func openBucket(tx *disk.Tx, name string) (*disk.Bucket, error) {
	all, err := tx.MakeBucket(watchesBucket)
	if err != nil {
		return nil, err
	}
	return all.MakeBucket([]byte(name))
}

// maxKey is the longest key that the file can have.
const maxKey = 32 << 10

// fits reports whether the file can have a resource.
func fits(r *stream.Resource) bool {
	return len(r.Key) > 0 && len(r.Key) <= maxKey && len(r.Value) < disk.MaxValueBytes-64
}
