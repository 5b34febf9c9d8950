package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/watchtide/watchtide/internal/disk"
)

// formerFormat is the format of files before fileFormat:
//
//	watches/NAME/watch              record, as JSON
//	watches/NAME/entries/REVISION   length of the key, key, value
//	watches/NAME/deletes/REVISION   milliseconds, key
//
// It took about a third more time to write a resource, since the page of its former revision changed as
// well, and each bucket that another one is in.
const formerFormat = 1

// formerRecord is the key of the record.
var formerRecord = []byte("watch")

// eachFormer is eachWatch of format 1.
func eachFormer(tx *disk.Tx, fn func(*fileWatch) error) error {
	all := tx.Bucket(watchesBucket)
	if all == nil {
		return nil
	}
	return all.EachBucket(func(name []byte) error {
		b := all.Bucket(name)
		f := &fileWatch{
			name: string(name), former: true, damaged: func(what string) error { return all.Damaged(name, what) },
			entries: b.Bucket(entriesBucket), deletes: b.Bucket(deletesBucket),
		}
		raw, err := b.Get(formerRecord)
		if err != nil {
			return err
		}
		if err := f.describe(raw); err != nil {
			return err
		}
		return fn(f)
	})
}

func formerResource(key, value []byte) (r found, ok bool) {
	size, n := binary.Uvarint(value)
	if len(key) != 8 || n <= 0 || size == 0 || size > MaxKeyBytes || uint64(len(value)-n) <= size {
		return r, false
	}
	value = value[n:]
	return found{binary.BigEndian.Uint64(key), value[:size], value[size:len(value):len(value)]}, true
}

// convert writes what a file of format 1 has into a new one.
func convert(format int, from *disk.Tx, update func(func(*disk.Tx) error) error) error {
	newest, err := from.Sequence()
	if err != nil {
		return err
	}
	return eachWatch(from, format, func(f *fileWatch) error {
		resources, err := f.resources(newest)
		if err != nil {
			return err
		}
		slices.SortFunc(resources, func(a, b found) int { return bytes.Compare(a.key, b.key) })
		for i := range resources[min(len(resources), 1):] {
			if key := resources[i].key; bytes.Equal(key, resources[i+1].key) {
				return f.damaged(fmt.Sprintf("it has key %.80q twice", key))
			}
		}
		c := &conversion{from: f, resources: resources, to: f.stored.record}
		c.to.Entries, c.to.Deletes = tally{}, tally{}
		for done := false; !done; {
			err := update(func(tx *disk.Tx) (err error) {
				done, err = c.step(tx)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// conversion writes one watch. Owned by convert.
type conversion struct {
	from      *fileWatch
	resources []found // that are to be written, by key
	to        record
}

// step writes some resources, and with the last of them the rest.
func (c *conversion) step(tx *disk.Tx) (done bool, err error) {
	entries, err := tx.MakeBucket(bucketOf(entriesBucket, c.from.name))
	if err != nil {
		return false, err
	}
	entries.Appended()
	n := 0
	for size := 0; n < len(c.resources) && size < mostBytes; n++ {
		r := &c.resources[n]
		sum, err := entries.PutParts(r.key, number(r.revision), r.value)
		if err != nil {
			return false, err
		}
		c.to.Entries.add(sum)
		size += len(r.key) + len(r.value)
	}
	if c.resources = c.resources[n:]; len(c.resources) > 0 {
		return false, nil
	}
	if err := c.deletes(tx); err != nil {
		return false, err
	}
	all, err := tx.MakeBucket(watchesBucket)
	if err != nil {
		return false, err
	}
	return true, (&stored{record: c.to}).putRecord(all, c.from.name)
}

// deletes writes the deletes, of which there are not many.
func (c *conversion) deletes(tx *disk.Tx) error {
	if c.from.deletes == nil {
		return nil
	}
	to, err := tx.MakeBucket(bucketOf(deletesBucket, c.from.name))
	if err != nil {
		return err
	}
	to.Appended()
	counted := tally{}
	err = c.from.each(c.from.deletes, &counted, func(key, value []byte) error {
		sum, err := to.PutParts(key, value, nil)
		c.to.Deletes.add(sum)
		return err
	})
	if err == nil && counted != c.from.stored.Deletes {
		err = c.from.damaged(counted.differs(c.from.stored.Deletes, "deletes"))
	}
	return err
}
