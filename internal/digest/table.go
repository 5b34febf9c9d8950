package digest

import (
	"encoding/binary"
	"fmt"
)

// keysPerBucket is about how many keys a bucket of a table has, and mostBuckets how many buckets there are at most: of a
// large state they have more keys.
const keysPerBucket, mostBuckets = 16, 1 << 14

// Table divides a state into buckets by the hash of the key, and has the digest of each.
type Table []Digest

// Buckets returns how many buckets the table of a state with so many resources has.
func Buckets(count uint64) int {
	if count > mostBuckets*keysPerBucket {
		return mostBuckets
	}
	return int(max(1, (count+keysPerBucket-1)/keysPerBucket))
}

// NewTable returns the table of an empty state, for one with so many resources.
func NewTable(count uint64) Table { return make(Table, Buckets(count)) }

// Bucket returns the bucket of a key.
func (t Table) Bucket(keyHash uint32) int { return BucketOf(keyHash, len(t)) }

// BucketOf returns in which of some buckets a key is.
func BucketOf(keyHash uint32, buckets int) int { return int(uint64(keyHash) * uint64(buckets) >> 32) }

// Add counts a resource.
func (t Table) Add(keyHash uint32, h Hash) {
	b := t.Bucket(keyHash)
	t[b] = t[b].Add(h)
}

// bucketSize is the size of the bytes of a bucket.
const bucketSize = 12

// Bytes returns 12 bytes for each bucket: the low 32 bits of its count, and the low 64 bits of its
// sum, both little-endian.
func (t Table) Bytes() []byte {
	b := make([]byte, 0, len(t)*bucketSize)
	for _, d := range t {
		b = binary.LittleEndian.AppendUint32(b, uint32(d.Count))
		b = binary.LittleEndian.AppendUint64(b, d.Lo)
	}
	return b
}

// Differing returns the buckets in which the state of t is another than that of the table with
// these bytes, in order.
func (t Table) Differing(bytes []byte) ([]int, error) {
	if len(bytes) != len(t)*bucketSize {
		return nil, fmt.Errorf("a table of %d buckets has %d bytes: want %d", len(t), len(bytes), len(t)*bucketSize)
	}
	var differing []int
	for i, d := range t {
		b := bytes[i*bucketSize:]
		if binary.LittleEndian.Uint32(b) != uint32(d.Count) || binary.LittleEndian.Uint64(b[4:]) != d.Lo {
			differing = append(differing, i)
		}
	}
	return differing, nil
}
