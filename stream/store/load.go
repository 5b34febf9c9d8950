package store

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// load reads the file into the logs. Nobody uses the store yet.
func (s *Store) load() error {
	restored := s.disk.file.Restored()
	err := s.disk.file.View(func(tx *disk.Tx) (err error) {
		if s.revision, err = tx.Sequence(); err != nil {
			return err
		}
		return eachWatch(tx, fileFormat, func(f *fileWatch) error { return s.loadWatch(f, restored != "") })
	})
	if errors.Is(err, memory.ErrExceeded) {
		return fmt.Errorf("store: %s does not fit into the memory of all watches, which is %d bytes: want a larger stream.memory.total", s.disk.file.Path(), s.memory.Bytes())
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if restored != "" {
		s.disk.logger.Warn("the file of a store is a copy that was put in its place: its watches begin new epochs, and clients load them again",
			"path", s.disk.file.Path(), "because", restored)
		return s.renew()
	}
	return nil
}

// loadWatch makes a watch of what the file has of it.
func (s *Store) loadWatch(f *fileWatch, renew bool) error {
	deletes, err := f.deleted(s.revision)
	if err != nil {
		return err
	}
	resources, err := f.resources(s.revision)
	if err != nil {
		return err
	}
	if deletes, err = f.remembered(resources, deletes); err != nil {
		return err
	}
	if renew {
		deletes, f.stored.Epoch, f.stored.Horizon = nil, newEpoch(), s.revision
	}
	w := s.newWatch(f.name)
	err = w.recall(resources, deletes, f.stored, s.revision)
	if errors.Is(err, memory.ErrExceeded) && len(deletes) > 0 {
		lost := stored{record: record{Epoch: f.stored.Epoch, Horizon: s.revision}}
		err = w.recall(resources, nil, &lost, s.revision) // there may be room for the resources alone
	}
	if err != nil {
		return fmt.Errorf("watch %q: %w", f.name, err)
	}
	w.stored = f.stored
	w.inSync()
	s.bytes += f.bytes
	s.watches[w.name] = w
	if w.log.Snapshot().Count() > 0 {
		s.keep(w)
	}
	return nil
}

// recall makes the log of a watch, which is new. When deletes were made does not count: they are
// remembered as if it had been now, so that clients that were there at the end can come back.
func (w *watch) recall(resources, deletes []found, of *stored, revision uint64) error {
	r := log.Record{Epoch: of.Epoch, Revision: revision, DeletesCompleteTo: stream.AllDeletes, Committed: time.Now()}
	if of.Horizon > 0 {
		r.Origin, r.Horizon, r.HorizonAge = of.Horizon, of.Horizon, r.Committed
	}
	entries := log.RecordedEntries{Count: len(resources) + len(deletes)}
	for _, all := range [][]found{resources, deletes} {
		for i := range all {
			entries.Bytes += int64(len(all[i].key) + len(all[i].value))
		}
	}
	entries.All = func(yield func(log.Recorded) bool) {
		resources, deletes := resources, deletes
		for seq := uint64(1); len(resources)+len(deletes) > 0; seq++ {
			next := &resources
			if len(resources) == 0 || len(deletes) > 0 && deletes[0].revision < resources[0].revision {
				next = &deletes
			}
			one := &(*next)[0]
			*next = (*next)[1:]
			if !yield(log.Recorded{Seq: seq, Place: one.revision, Resource: one.resource(), Deleted: one.value == nil, At: r.Committed}) {
				return
			}
		}
	}
	return w.log.Recall(r, entries)
}

// renew writes the new epochs, and forgets the deletes, which no reader of them needs.
func (s *Store) renew() error {
	return s.disk.file.Update(func(tx *disk.Tx) error {
		all, err := tx.MakeBucket(watchesBucket)
		if err != nil {
			return err
		}
		for _, w := range s.watches {
			if err := tx.DropBucket(bucketOf(deletesBucket, w.name)); err != nil {
				return err
			}
			w.stored.deletes, w.stored.deleteBytes, w.stored.Deletes = nil, 0, tally{}
			if err := w.stored.putRecord(all, w.name); err != nil {
				return err
			}
		}
		return tx.SetSequence(s.revision)
	})
}

// fileWatch is one watch of a file that is being read.
type fileWatch struct {
	name             string
	stored           *stored
	entries, deletes *disk.Bucket // nil: there are none
	former           bool         // the file is of format 1
	bytes            int64        // of the keys and values of the resources that were read

	damaged func(what string) error // of the watch as a whole
}

// eachWatch calls fn for each watch of a file, sorted by name.
func eachWatch(tx *disk.Tx, format int, fn func(*fileWatch) error) error {
	if format == formerFormat {
		return eachFormer(tx, fn)
	}
	all, known := tx.Bucket(watchesBucket), map[string]bool{string(watchesBucket): true}
	if all != nil {
		err := all.Each(func(name, raw []byte) error {
			f := &fileWatch{name: string(name), damaged: func(what string) error { return all.Damaged(name, what) }}
			entries, deletes := bucketOf(entriesBucket, f.name), bucketOf(deletesBucket, f.name)
			known[string(entries)], known[string(deletes)] = true, true
			f.entries, f.deletes = tx.Bucket(entries), tx.Bucket(deletes)
			if err := f.describe(raw); err != nil {
				return err
			}
			return fn(f)
		})
		if err != nil {
			return err
		}
	}
	return tx.EachBucket(func(name []byte) error {
		if !known[string(name)] {
			return tx.Damaged(name, "it is of no watch")
		}
		return nil
	})
}

// describe reads the record.
func (f *fileWatch) describe(raw []byte) error {
	if err := stream.CheckWatchName(f.name); err != nil {
		return f.damaged(err.Error())
	}
	f.stored = &stored{}
	if err := json.Unmarshal(raw, &f.stored.record); err != nil || f.stored.Epoch == "" {
		return f.damaged("it does not describe a watch")
	}
	return nil
}

// found is a resource of a file, which it aliases, or a delete, which has no value.
type found struct {
	revision   uint64
	key, value []byte
}

func (f *found) resource() stream.Resource {
	return stream.Resource{Key: string(f.key), Revision: f.revision, Value: f.value}
}

// resources returns the resources by rising revision.
func (f *fileWatch) resources(newest uint64) ([]found, error) {
	all := make([]found, 0, min(f.stored.Entries.Count, 1<<24))
	counted := tally{}
	err := f.each(f.entries, &counted, func(key, value []byte) error {
		r, ok := f.resource(key, value)
		if !ok || !stream.OneLine(r.value) {
			return f.entries.Damaged(key, "it is no resource")
		}
		f.bytes += int64(len(r.key) + len(r.value))
		all = append(all, r)
		return checkRevision(f.entries, key, r.revision, newest)
	})
	if err == nil && counted != f.stored.Entries {
		err = f.damaged(counted.differs(f.stored.Entries, "resources"))
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.revision, b.revision) })
	for i := range all[min(len(all), 1):] {
		if all[i].revision == all[i+1].revision {
			return nil, f.entries.Damaged(all[i+1].key, "another resource has its revision")
		}
	}
	return all, nil
}

// resource decodes a resource.
func (f *fileWatch) resource(key, value []byte) (r found, ok bool) {
	if f.former {
		return formerResource(key, value)
	}
	if len(value) <= 8 || len(key) > MaxKeyBytes {
		return r, false
	}
	return found{binary.BigEndian.Uint64(value), key, value[8:len(value):len(value)]}, true
}

// deleted returns the deletes by rising revision.
func (f *fileWatch) deleted(newest uint64) (all []found, err error) {
	counted := tally{}
	err = f.each(f.deletes, &counted, func(key, value []byte) error {
		if len(key) != 8 || len(value) <= 8 || len(value) > 8+MaxKeyBytes {
			return f.deletes.Damaged(key, "it is no delete")
		}
		revision, gone := binary.BigEndian.Uint64(key), value[8:]
		f.stored.remember(deleted{revision: revision, at: int64(binary.BigEndian.Uint64(value)), bytes: deleteCost(len(gone))})
		all = append(all, found{revision, gone, nil})
		return checkRevision(f.deletes, key, revision, newest)
	})
	if err == nil && counted != f.stored.Deletes {
		err = f.damaged(counted.differs(f.stored.Deletes, "deletes"))
	}
	return all, err
}

// remembered returns the deletes that a log needs: the last one of each key that has no resource.
func (f *fileWatch) remembered(resources, deletes []found) (kept []found, err error) {
	if len(deletes) == 0 {
		return nil, nil
	}
	last := make(map[string]uint64, len(deletes))
	for i := range deletes {
		last[string(deletes[i].key)] = deletes[i].revision
	}
	for i := range resources {
		r := &resources[i]
		if at := last[string(r.key)]; at >= r.revision {
			return nil, f.entries.Damaged(r.key, fmt.Sprintf("it is of revision %d, and was deleted at %d", r.revision, at))
		}
		delete(last, string(r.key))
	}
	for _, d := range deletes {
		if last[string(d.key)] == d.revision {
			kept = append(kept, d)
		}
	}
	return kept, nil
}

// each calls fn for each value of a bucket; nil: it has none.
func (f *fileWatch) each(b *disk.Bucket, counted *tally, fn func(key, value []byte) error) error {
	if b == nil {
		return nil
	}
	return b.EachSum(func(key, value []byte, sum uint32) error {
		counted.add(sum)
		return fn(key, value)
	})
}

func checkRevision(b *disk.Bucket, key []byte, revision, newest uint64) error {
	if revision == 0 || revision > newest {
		return b.Damaged(key, fmt.Sprintf("it has revision %d, and the newest is %d", revision, newest))
	}
	return nil
}
