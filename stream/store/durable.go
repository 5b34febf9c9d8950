package store

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// fileFormat is the format of the file:
//
//	watches        NAME      record, as JSON
//	entries/NAME   KEY       revision, value
//	deletes/NAME   REVISION  milliseconds, key
//
// Numbers are 8 bytes, the most significant first, so that deletes are in the order of revisions. All
// buckets are beside each other, and resources have their keys: a write to one changes its page, those
// that lead to it, and the page of the list of buckets, which the records are on while they are few.
// Format 1 is read by former.
const fileFormat = 2

var (
	watchesBucket = []byte("watches")
	entriesBucket = []byte("entries")
	deletesBucket = []byte("deletes")
)

// bucketOf returns the name of a bucket of a watch.
func bucketOf(kind []byte, watch string) []byte {
	return slices.Concat(kind, []byte("/"), []byte(watch))
}

// durable is the disk of a store. Its methods belong to the holder of the store's turn, except for
// Stats. A nil one has no disk.
type durable struct {
	// Static after construction.
	file    *disk.File
	history log.Retention
	logger  *slog.Logger

	gone   map[string]*watch // of the file, by name, that the store has forgotten
	failed error             // why it takes nothing more; nil: it does

	commits atomic.Uint64
	waited  atomic.Int64 // for the disk, in nanoseconds
	broken  atomic.Bool
}

// record is what the file says about a watch.
type record struct {
	Epoch string `json:"epoch"`
	// Horizon is the revision after which every delete is in the file.
	Horizon uint64 `json:"horizon"`
	Entries tally  `json:"entries"`
	Deletes tally  `json:"deletes"`
}

// append appends the record as JSON. It is written with each write, so it is made without reflection.
func (r *record) append(dst []byte) []byte {
	dst = stream.AppendJSONString(append(dst, `{"epoch":`...), r.Epoch)
	dst = strconv.AppendUint(append(dst, `,"horizon":`...), r.Horizon, 10)
	dst = r.Entries.append(append(dst, `,"entries":`...))
	dst = r.Deletes.append(append(dst, `,"deletes":`...))
	return append(dst, '}')
}

// tally tells that the values of a bucket are complete: each has a checksum of its own, which says
// nothing about those that are missing.
type tally struct {
	Count uint64 `json:"count"`
	Sum   uint64 `json:"sum"`
}

func (t *tally) add(sum uint32)    { t.Count, t.Sum = t.Count+1, t.Sum+uint64(sum) }
func (t *tally) remove(sum uint32) { t.Count, t.Sum = t.Count-1, t.Sum-uint64(sum) }

// append appends the tally as JSON.
func (t tally) append(dst []byte) []byte {
	dst = strconv.AppendUint(append(dst, `{"count":`...), t.Count, 10)
	dst = strconv.AppendUint(append(dst, `,"sum":`...), t.Sum, 10)
	return append(dst, '}')
}

// differs says how what was found is not what was written.
func (t tally) differs(want tally, what string) string {
	if t.Count == want.Count {
		return fmt.Sprintf("its %d %s are not those that were written", t.Count, what)
	}
	return fmt.Sprintf("it has %d %s, want %d", t.Count, what, want.Count)
}

// stored is what the file has of a watch.
type stored struct {
	record
	deletes     []deleted // by rising revision
	deleteBytes int64
}

// deleted is a delete in the file.
type deleted struct {
	revision uint64
	at       int64 // in milliseconds
	bytes    int64
}

func fileConfig(path string) disk.Config {
	return disk.Config{Path: path, Kind: "store", Format: fileFormat, Convert: convert}
}

func openDurable(c Config) (*durable, error) {
	file, err := disk.Open(fileConfig(c.Path))
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	d := &durable{file: file, history: c.History.WithDefaults(), logger: c.Logger, gone: map[string]*watch{}}
	if d.logger == nil {
		d.logger = slog.New(slog.DiscardHandler)
	}
	return d, nil
}

func (d *durable) close() {
	if err := d.file.Close(); err != nil {
		d.logger.Error("the file of a store was not closed", "path", d.file.Path(), "error", err.Error())
	}
}

// forget is called when the store forgets a watch. The file forgets it with the next write, unless
// that makes the watch known again.
func (d *durable) forget(w *watch) {
	if d != nil && w.stored != nil {
		d.gone[w.name] = w
	}
}

// fail ends all writing: what the disk has is not known.
func (d *durable) fail(err error) {
	if d.failed != nil {
		return
	}
	d.failed = &stream.UnavailableError{
		What: "the store takes no writes until it is started again: a write to its disk has failed", Cause: err,
	}
	d.broken.Store(true)
	d.logger.Error("a write to the disk has failed: the store takes no more writes until a restart, and reads go on",
		"path", d.file.Path(), "error", err.Error())
}

// write makes changes last. It returns when they are on the disk. known are the watches of the store.
func (d *durable) write(ops []*op, known map[string]*watch) error {
	if d.failed != nil || len(ops) == 0 {
		return d.failed
	}
	for name, w := range d.gone {
		if known[name] == w {
			delete(d.gone, name)
		}
	}
	start := time.Now()
	err := d.file.Update(func(tx *disk.Tx) error {
		t := &turn{disk: d, tx: tx, now: start, open: map[*watch]*openWatch{}}
		return t.write(ops)
	})
	d.commits.Add(1)
	d.waited.Add(int64(time.Since(start)))
	if err != nil {
		d.fail(err)
		return d.failed
	}
	clear(d.gone)
	return nil
}

// turn is one transaction of the file.
type turn struct {
	disk *durable
	tx   *disk.Tx
	now  time.Time
	all  *disk.Bucket
	open map[*watch]*openWatch
}

// openWatch is a watch that a transaction writes to.
type openWatch struct {
	*stored
	tx               *disk.Tx
	name             string
	entries, removed *disk.Bucket // nil: not used yet
}

func (t *turn) write(ops []*op) (err error) {
	if t.all, err = t.tx.MakeBucket(watchesBucket); err != nil {
		return err
	}
	for name, w := range t.disk.gone {
		if err := t.drop(name); err != nil {
			return err
		}
		w.stored = nil
	}
	for _, o := range ops {
		w, err := t.watch(o.watch, o.change.Revision-1)
		if err == nil {
			err = w.apply(o, t.now)
		}
		if err != nil {
			return err
		}
	}
	for _, w := range t.open {
		if err := w.finish(t.disk.history, t.now); err != nil {
			return err
		}
		if err := w.putRecord(t.all, w.name); err != nil {
			return err
		}
	}
	return t.tx.SetSequence(ops[len(ops)-1].change.Revision)
}

// drop removes what the file has under a name.
func (t *turn) drop(name string) error {
	for _, kind := range [][]byte{entriesBucket, deletesBucket} {
		if err := t.tx.DropBucket(bucketOf(kind, name)); err != nil {
			return err
		}
	}
	return t.all.Delete([]byte(name))
}

// watch returns a watch, which is made if the file does not have it. before is the revision of the
// store before its first change.
func (t *turn) watch(w *watch, before uint64) (o *openWatch, err error) {
	if o = t.open[w]; o != nil {
		return o, nil
	}
	if w.stored == nil { // what another watch left under this name is gone
		if err := t.drop(w.name); err != nil {
			return nil, err
		}
		w.stored = &stored{record: record{Epoch: w.log.Snapshot().Epoch(), Horizon: before}}
		if h := w.log.Snapshot(); h.Count() == 0 && h.Tombstones() == 0 {
			w.stored.Horizon, _ = h.Horizon()
		}
	}
	o = &openWatch{stored: w.stored, tx: t.tx, name: w.name}
	t.open[w] = o
	return o, nil
}

func (w *openWatch) entriesBucket() (b *disk.Bucket, err error) {
	if w.entries == nil {
		if w.entries, err = w.tx.MakeBucket(bucketOf(entriesBucket, w.name)); err == nil {
			w.entries.Inserted()
		}
	}
	return w.entries, err
}

func (w *openWatch) deletesBucket() (b *disk.Bucket, err error) {
	if w.removed == nil {
		if w.removed, err = w.tx.MakeBucket(bucketOf(deletesBucket, w.name)); err == nil {
			w.removed.Appended()
		}
	}
	return w.removed, err
}

// apply writes one change.
func (w *openWatch) apply(o *op, now time.Time) error {
	entries, err := w.entriesBucket()
	if err != nil {
		return err
	}
	c, key := &o.change, []byte(o.change.Key)
	if err := w.replace(entries, key, o.old); err != nil {
		return err
	}
	if !c.Deleted {
		sum, err := entries.PutParts(key, number(c.Revision), c.Value)
		w.Entries.add(sum)
		return err
	}
	if o.old > 0 {
		if err := entries.Delete(key); err != nil {
			return err
		}
	}
	removed, err := w.deletesBucket()
	if err != nil {
		return err
	}
	at := now.UnixMilli()
	sum, err := removed.PutParts(number(c.Revision), number(uint64(at)), key)
	w.Deletes.add(sum)
	w.remember(deleted{revision: c.Revision, at: at, bytes: deleteCost(len(key))})
	return err
}

// replace no longer counts what the file has of a key, which must be of the revision old; 0: nothing.
func (w *openWatch) replace(entries *disk.Bucket, key []byte, old uint64) error {
	value, sum, err := entries.GetSum(key)
	switch {
	case err != nil:
		return err
	case value == nil && old == 0:
		return nil
	case value == nil:
		return entries.Damaged(key, "it is missing")
	case len(value) < 8 || binary.BigEndian.Uint64(value) != old:
		return entries.Damaged(key, fmt.Sprintf("it is not of revision %d", old))
	}
	w.Entries.remove(sum)
	return nil
}

// putRecord writes the record of a watch.
func (s *stored) putRecord(all *disk.Bucket, name string) error {
	return all.Put([]byte(name), s.record.append(make([]byte, 0, 160)))
}

func (s *stored) remember(d deleted) {
	s.deletes = append(s.deletes, d)
	s.deleteBytes += d.bytes
}

// deleteCost is about what a delete of a key of so many bytes counts in the log.
func deleteCost(key int) int64 { return int64(key) + 100 }

// mostForgotten bounds the deletes that one transaction forgets.
const mostForgotten = 4096

// finish forgets deletes that are not needed any more.
func (w *openWatch) finish(history log.Retention, now time.Time) error {
	n := 0
	for n < len(w.deletes) && n < mostForgotten && w.exceeds(n, history, now) {
		if err := w.forget(&w.deletes[n]); err != nil {
			return err
		}
		n++
	}
	if w.deletes = w.deletes[n:]; n > 0 && len(w.deletes) < cap(w.deletes)/4 {
		w.deletes = slices.Clone(w.deletes)
	}
	return nil
}

// forget removes one delete.
func (w *openWatch) forget(d *deleted) error {
	removed, err := w.deletesBucket()
	if err != nil {
		return err
	}
	key := number(d.revision)
	value, sum, err := removed.GetSum(key)
	if err != nil {
		return err
	}
	if value == nil {
		return removed.Damaged(key, "it is missing")
	}
	w.Deletes.remove(sum)
	w.deleteBytes -= d.bytes
	w.Horizon = max(w.Horizon, d.revision)
	return removed.Delete(key)
}

// exceeds reports whether the deletes from the n-th on are too many, or too old.
func (s *stored) exceeds(n int, history log.Retention, now time.Time) bool {
	return len(s.deletes)-n > history.MaxDeletes || s.deleteBytes > history.MaxBytes ||
		s.deletes[n].at < now.Add(-history.MaxAge).UnixMilli()
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// Disk returns what is known of the disk; the zero value: the store has none. It may be called by any
// goroutine.
func (s *Store) Disk() stream.DiskStats {
	d := s.disk
	if d == nil {
		return stream.DiskStats{}
	}
	size, free := d.file.Sizes()
	return stream.DiskStats{
		Path: d.file.Path(), FileBytes: size, FreeBytes: free,
		Commits: d.commits.Load(), Waited: time.Duration(d.waited.Load()), Failed: d.broken.Load(),
	}
}
