package store

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
	resources, deletes, err := f.changes(s.revision)
	if err != nil {
		return err
	}
	w := s.newWatch(f.name)
	if renew {
		deletes, f.stored.Epoch, f.stored.Horizon = nil, newEpoch(), s.revision
	}
	w.log.PrepareEarlier(&log.Earlier{Deletes: deletes, After: f.stored.Horizon})
	if _, err := w.log.ReplaceWith(f.stored.Epoch, resources, s.revision, stream.AllDeletes); err != nil {
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

// read returns the resources, and the deletes that are remembered, by rising revision. Values alias the
// file.
func (f *fileWatch) read(newest uint64) (resources, deleted []stream.Resource, err error) {
	if resources, err = f.resources(newest); err != nil {
		return nil, nil, err
	}
	deleted, err = f.deleted(newest)
	return resources, deleted, err
}

// changes is read of resources as a log takes them: they are large, and not copied.
func (f *fileWatch) changes(newest uint64) (changes []log.Change, deletes []stream.Resource, err error) {
	changes = make([]log.Change, 0, min(f.stored.Entries.Count, 1<<24))
	err = f.eachResource(newest, func(r *stream.Resource) { changes = append(changes, log.Change{Resource: *r}) })
	if err == nil {
		err = sortByRevision(f, changes, func(c *log.Change) *stream.Resource { return &c.Resource })
	}
	if err == nil {
		deletes, err = f.deleted(newest)
	}
	return changes, deletes, err
}

// resources returns the resources by rising revision.
func (f *fileWatch) resources(newest uint64) ([]stream.Resource, error) {
	resources := make([]stream.Resource, 0, min(f.stored.Entries.Count, 1<<24))
	err := f.eachResource(newest, func(r *stream.Resource) { resources = append(resources, *r) })
	if err == nil {
		err = sortByRevision(f, resources, func(r *stream.Resource) *stream.Resource { return r })
	}
	return resources, err
}

// eachResource calls fn with each resource, sorted as they are in the file.
func (f *fileWatch) eachResource(newest uint64, fn func(*stream.Resource)) error {
	found := tally{}
	err := f.each(f.entries, &found, func(key, value []byte) error {
		r, ok := f.resource(key, value)
		if !ok {
			return f.entries.Damaged(key, "it is no resource")
		}
		f.bytes += int64(len(r.Key) + len(r.Value))
		fn(&r)
		return checkRevision(f.entries, key, r.Revision, newest)
	})
	if err == nil && found != f.stored.Entries {
		err = f.damaged(found.differs(f.stored.Entries, "resources"))
	}
	return err
}

// sortByRevision sorts what has resources, no two of which may have the same revision. It sorts places,
// since what is sorted is large, and moves each of all to its place.
func sortByRevision[T any](f *fileWatch, all []T, of func(*T) *stream.Resource) error {
	type placed struct {
		revision uint64
		at       int
	}
	order := make([]placed, len(all))
	for i := range all {
		order[i] = placed{of(&all[i]).Revision, i}
	}
	slices.SortFunc(order, func(a, b placed) int { return cmp.Compare(a.revision, b.revision) })
	for i := range order[min(len(order), 1):] {
		if order[i].revision == order[i+1].revision {
			return f.entries.Damaged([]byte(of(&all[order[i].at]).Key), "another resource has its revision")
		}
	}
	for start := range order { // each cycle of the permutation
		if order[start].at < 0 {
			continue // it is in its place
		}
		first, to := all[start], start
		for from := order[to].at; from != start; from = order[to].at {
			all[to], order[to].at = all[from], -1
			to = from
		}
		all[to], order[to].at = first, -1
	}
	return nil
}

// resource decodes a resource.
func (f *fileWatch) resource(key, value []byte) (r stream.Resource, ok bool) {
	if f.former {
		return formerResource(key, value)
	}
	if len(value) <= 8 || len(key) > MaxKeyBytes {
		return r, false
	}
	return stream.Resource{Key: string(key), Revision: binary.BigEndian.Uint64(value), Value: value[8:len(value):len(value)]}, true
}

// deleted returns the deletes by rising revision.
func (f *fileWatch) deleted(newest uint64) (resources []stream.Resource, err error) {
	found := tally{}
	err = f.each(f.deletes, &found, func(key, value []byte) error {
		if len(key) != 8 || len(value) <= 8 || len(value) > 8+MaxKeyBytes {
			return f.deletes.Damaged(key, "it is no delete")
		}
		revision, gone := binary.BigEndian.Uint64(key), string(value[8:])
		f.stored.remember(deleted{revision: revision, at: int64(binary.BigEndian.Uint64(value)), bytes: deleteCost(gone)})
		resources = append(resources, stream.Resource{Key: gone, Revision: revision})
		return checkRevision(f.deletes, key, revision, newest)
	})
	if err == nil && found != f.stored.Deletes {
		err = f.damaged(found.differs(f.stored.Deletes, "deletes"))
	}
	return resources, err
}

// each calls fn for each value of a bucket; nil: it has none.
func (f *fileWatch) each(b *disk.Bucket, found *tally, fn func(key, value []byte) error) error {
	if b == nil {
		return nil
	}
	return b.Each(func(key, value []byte) error {
		found.add(b.Sum(key, value))
		return fn(key, value)
	})
}

func checkRevision(b *disk.Bucket, key []byte, revision, newest uint64) error {
	if revision == 0 || revision > newest {
		return b.Damaged(key, fmt.Sprintf("it has revision %d, and the newest is %d", revision, newest))
	}
	return nil
}
