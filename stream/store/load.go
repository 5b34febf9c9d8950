package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

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
		return eachWatch(tx, func(f *fileWatch) error { return s.loadWatch(f, restored != "") })
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
	resources, deletes, err := f.read(s.revision)
	if err != nil {
		return err
	}
	w := s.newWatch(f.name)
	if renew {
		deletes, f.stored.Epoch, f.stored.Horizon = nil, newEpoch(), s.revision
	}
	w.log.PrepareEarlier(&log.Earlier{Deletes: deletes, After: f.stored.Horizon})
	if _, err := w.log.Replace(f.stored.Epoch, resources, s.revision); err != nil {
		return fmt.Errorf("watch %q: %w", f.name, err)
	}
	w.stored = f.stored
	w.inSync()
	for i := range resources {
		s.bytes += int64(len(resources[i].Key) + len(resources[i].Value))
	}
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
			bucket := all.Bucket([]byte(w.name))
			if err := bucket.DropBucket(deletesBucket); err != nil {
				return err
			}
			w.stored.deletes, w.stored.deleteBytes, w.stored.Deletes = nil, 0, tally{}
			raw, err := json.Marshal(&w.stored.record)
			if err != nil {
				return err
			}
			if err := bucket.Put(recordKey, raw); err != nil {
				return err
			}
		}
		return tx.SetSequence(s.revision)
	})
}

// fileWatch is one watch of a file that is being read.
type fileWatch struct {
	name   string
	bucket *disk.Bucket
	stored *stored
}

// eachWatch calls fn for each watch of a file.
func eachWatch(tx *disk.Tx, fn func(*fileWatch) error) error {
	all := tx.Bucket(watchesBucket)
	if all == nil {
		return nil
	}
	return all.EachBucket(func(name []byte) error {
		f := &fileWatch{name: string(name), bucket: all.Bucket(name), stored: &stored{}}
		if err := stream.CheckWatchName(f.name); err != nil {
			return all.Damaged(name, err.Error())
		}
		raw, err := f.bucket.Get(recordKey)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(raw, &f.stored.record); err != nil || f.stored.Epoch == "" {
			return f.bucket.Damaged(recordKey, "it does not describe a watch")
		}
		return fn(f)
	})
}

// read returns the resources, and the deletes that are remembered, by rising revision. Values alias the
// file.
func (f *fileWatch) read(newest uint64) (resources, deletes []stream.Resource, err error) {
	if resources, err = f.resources(newest); err != nil {
		return nil, nil, err
	}
	deletes, err = f.deletes(newest)
	return resources, deletes, err
}

// resources returns the resources.
func (f *fileWatch) resources(newest uint64) ([]stream.Resource, error) {
	resources := make([]stream.Resource, 0, min(f.stored.Entries.Count, 1<<24))
	found := tally{}
	err := each(f.bucket, entriesBucket, newest, &found, func(b *disk.Bucket, revision uint64, key, value []byte) error {
		size, n := binary.Uvarint(value)
		if n <= 0 || size > MaxKeyBytes || size == 0 || uint64(len(value)-n) < size {
			return b.Damaged(key, "it is no resource")
		}
		value = value[n:]
		resources = append(resources, stream.Resource{
			Key: string(value[:size]), Revision: revision, Value: value[size:len(value):len(value)],
		})
		return nil
	})
	if err == nil && found != f.stored.Entries {
		err = f.bucket.Damaged(entriesBucket, fmt.Sprintf("it has %d resources, want %d", found.Count, f.stored.Entries.Count))
	}
	return resources, err
}

// deletes returns the deletes.
func (f *fileWatch) deletes(newest uint64) (deletes []stream.Resource, err error) {
	found := tally{}
	err = each(f.bucket, deletesBucket, newest, &found, func(b *disk.Bucket, revision uint64, key, value []byte) error {
		if len(value) <= 8 || len(value) > 8+MaxKeyBytes {
			return b.Damaged(key, "it is no delete")
		}
		gone := string(value[8:])
		f.stored.remember(deleted{revision: revision, at: int64(binary.BigEndian.Uint64(value)), bytes: deleteCost(gone)})
		deletes = append(deletes, stream.Resource{Key: gone, Revision: revision})
		return nil
	})
	if err == nil && found != f.stored.Deletes {
		err = f.bucket.Damaged(deletesBucket, fmt.Sprintf("it has %d deletes, want %d", found.Count, f.stored.Deletes.Count))
	}
	return deletes, err
}

// each calls fn for each value of a bucket that has revisions as keys.
func each(in *disk.Bucket, name []byte, newest uint64, found *tally, fn func(b *disk.Bucket, revision uint64, key, value []byte) error) error {
	b := in.Bucket(name)
	if b == nil {
		return nil
	}
	return b.Each(func(key, value []byte) error {
		if len(key) != 8 {
			return b.Damaged(key, "it is no revision")
		}
		revision := binary.BigEndian.Uint64(key)
		if revision == 0 || revision > newest {
			return b.Damaged(key, fmt.Sprintf("it has revision %d, and the newest is %d", revision, newest))
		}
		found.add(b.Sum(key, value))
		return fn(b, revision, key, value)
	})
}
