package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"go.etcd.io/bbolt"
)

// MaxValueBytes is the length of the longest value: what is longer was not written here.
const MaxValueBytes = 1 << 30

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// DamagedError reports a file that is not as it was written.
type DamagedError struct {
	Path string
	What string // and where
}

// Error says what to do.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged: %s. Nothing of it is served. Put a backup in its place, or move it away to begin empty", e.Path, e.What)
}

// Tx is one transaction, or the reading of one state. Owned by the goroutine of its function.
type Tx struct {
	tx       *bbolt.Tx
	path     string
	sequence uint64 // set by the transaction; 0: it was not
}

// Bucket is a sorted collection of values by key.
type Bucket struct {
	b    *bbolt.Bucket
	path string
	name string // with the names of the buckets that it is in
	seed uint32 // of checksums: that of the name
}

// Bucket returns a bucket; nil: there is none.
func (tx *Tx) Bucket(name []byte) *Bucket { return wrap(tx.tx.Bucket(name), tx.path, "", name) }

// MakeBucket returns a bucket, which it makes if there is none.
func (tx *Tx) MakeBucket(name []byte) (*Bucket, error) {
	b, err := tx.tx.CreateBucketIfNotExists(name)
	return wrap(b, tx.path, "", name), err
}

// DropBucket removes a bucket, and everything in it.
func (tx *Tx) DropBucket(name []byte) error {
	if tx.tx.Bucket(name) == nil {
		return nil
	}
	return tx.tx.DeleteBucket(name)
}

// EachBucket calls fn with the name of each bucket, except for that of the header.
func (tx *Tx) EachBucket(fn func(name []byte) error) error {
	return tx.tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
		if bytes.Equal(name, headerBucket) {
			return nil
		}
		return fn(name)
	})
}

// Damaged returns the error for a bucket that cannot be right.
func (tx *Tx) Damaged(bucket []byte, why string) error {
	return &DamagedError{Path: tx.path, What: fmt.Sprintf("bucket %.100q: %s", bucket, why)}
}

// Sequence returns the newest number that a transaction has set.
func (tx *Tx) Sequence() (uint64, error) {
	b := tx.Bucket(headerBucket)
	if b == nil {
		return 0, nil
	}
	return b.sequence()
}

// SetSequence sets the number of the newest record. It must not be below the former one.
func (tx *Tx) SetSequence(n uint64) error {
	b, err := tx.MakeBucket(headerBucket)
	if err != nil {
		return err
	}
	before, err := b.sequence()
	switch {
	case err != nil:
		return err
	case n < before:
		return fmt.Errorf("%s: number %d after %d", tx.path, n, before)
	}
	tx.sequence = n
	return b.Put(sequenceKey, binary.BigEndian.AppendUint64(nil, n))
}

// sequence returns the number in the header; 0: it has none.
func (b *Bucket) sequence() (uint64, error) {
	raw, err := b.Get(sequenceKey)
	switch {
	case raw == nil || err != nil:
		return 0, err
	case len(raw) != 8:
		return 0, b.damaged(sequenceKey, "want 8 bytes")
	}
	return binary.BigEndian.Uint64(raw), nil
}

var sequenceKey = []byte("sequence")

func wrap(b *bbolt.Bucket, path, in string, name []byte) *Bucket {
	if b == nil {
		return nil
	}
	name = slices.Concat([]byte(in), []byte("/"), name)
	return &Bucket{b: b, path: path, name: string(name), seed: crc32.Checksum(name, castagnoli)}
}

// Bucket returns a bucket in this one; nil: there is none.
func (b *Bucket) Bucket(name []byte) *Bucket { return wrap(b.b.Bucket(name), b.path, b.name, name) }

// MakeBucket returns a bucket in this one, which it makes if there is none.
func (b *Bucket) MakeBucket(name []byte) (*Bucket, error) {
	in, err := b.b.CreateBucketIfNotExists(name)
	return wrap(in, b.path, b.name, name), err
}

// DropBucket removes a bucket in this one, and everything in it.
func (b *Bucket) DropBucket(name []byte) error {
	if b.b.Bucket(name) == nil {
		return nil
	}
	return b.b.DeleteBucket(name)
}

// Appended declares that keys are mostly added at the end, so that pages are filled.
func (b *Bucket) Appended() { b.b.FillPercent = 0.95 }

// Inserted declares that keys are added anywhere, and often in order. In order pages are filled to three
// quarters, in place of half; elsewhere there are a twelfth more of them.
func (b *Bucket) Inserted() { b.b.FillPercent = 0.75 }

// Put writes a value with its checksum.
func (b *Bucket) Put(key, value []byte) error {
	_, err := b.PutParts(key, value, nil)
	return err
}

// PutParts is Put of a value in two parts. It returns the checksum.
func (b *Bucket) PutParts(key, head, rest []byte) (sum uint32, err error) {
	sealed := make([]byte, 4, 4+len(head)+len(rest)) // the database keeps it until the commit
	sealed = append(append(sealed, head...), rest...)
	sum = b.sum(key, sealed[4:])
	binary.LittleEndian.PutUint32(sealed, sum)
	return sum, b.b.Put(key, sealed)
}

// Delete removes a value, if it is there.
func (b *Bucket) Delete(key []byte) error { return b.b.Delete(key) }

// Get returns a value, which is valid during the transaction; nil: there is none.
func (b *Bucket) Get(key []byte) ([]byte, error) {
	value, _, err := b.GetSum(key)
	return value, err
}

// GetSum is Get with the checksum.
func (b *Bucket) GetSum(key []byte) (value []byte, sum uint32, err error) {
	sealed := b.b.Get(key)
	if sealed == nil {
		return nil, 0, nil
	}
	return b.open(key, sealed)
}

// Each calls fn for each value, sorted by key, until fn returns an error. Both slices are valid during
// the call.
func (b *Bucket) Each(fn func(key, value []byte) error) error {
	return b.EachFrom(nil, fn)
}

// EachFrom is Each from a key on.
func (b *Bucket) EachFrom(from []byte, fn func(key, value []byte) error) error {
	return b.eachFrom(from, func(key, value []byte, _ uint32) error { return fn(key, value) })
}

// EachSum is Each with the checksums.
func (b *Bucket) EachSum(fn func(key, value []byte, sum uint32) error) error {
	return b.eachFrom(nil, fn)
}

func (b *Bucket) eachFrom(from []byte, fn func(key, value []byte, sum uint32) error) error {
	c := b.b.Cursor()
	for key, sealed := c.Seek(from); key != nil; key, sealed = c.Next() {
		if sealed == nil {
			continue // a bucket
		}
		value, sum, err := b.open(key, sealed)
		if err != nil {
			return err
		}
		if err := fn(key, value, sum); err != nil {
			return err
		}
	}
	return nil
}

// EachBucket calls fn with the name of each bucket in this one.
func (b *Bucket) EachBucket(fn func(name []byte) error) error { return b.b.ForEachBucket(fn) }

func (b *Bucket) open(key, sealed []byte) (value []byte, sum uint32, err error) {
	switch {
	case len(sealed) < 4:
		return nil, 0, b.damaged(key, "its value is too short to have a checksum")
	case len(sealed) > MaxValueBytes:
		return nil, 0, b.damaged(key, fmt.Sprintf("its value has %d bytes", len(sealed)))
	}
	value = sealed[4:]
	if sum = b.sum(key, value); sum != binary.LittleEndian.Uint32(sealed) {
		return nil, 0, b.damaged(key, fmt.Sprintf("its checksum is %08x, want %08x", sum, binary.LittleEndian.Uint32(sealed)))
	}
	return value, sum, nil
}

func (b *Bucket) sum(key, value []byte) uint32 {
	return crc32.Update(crc32.Update(b.seed, castagnoli, key), castagnoli, value)
}

// Damaged returns the error for a value that has the right checksum and cannot be right.
func (b *Bucket) Damaged(key []byte, why string) error { return b.damaged(key, why) }

func (b *Bucket) damaged(key []byte, why string) error {
	return &DamagedError{Path: b.path, What: fmt.Sprintf("key %.80q of bucket %.100q: %s", key, b.name, why)}
}
