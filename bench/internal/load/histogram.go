package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"
)

// Histogram counts durations in buckets that are at most 1/64 of their value
// wide, without allocating. The zero value is empty. It belongs to one goroutine.
type Histogram struct {
	buckets [fine * 58]uint64
	count   uint64
	largest int64
}

// fine is the number of buckets for each power of two; below it, each
// nanosecond has its own.
const fine = 64

// Record counts d; negative values count as 0.
func (h *Histogram) Record(d time.Duration) {
	n := max(int64(d), 0)
	h.buckets[bucket(uint64(n))]++
	h.count++
	h.largest = max(h.largest, n)
}

// Count returns how many durations were recorded.
func (h *Histogram) Count() uint64 { return h.count }

// Max returns the largest.
func (h *Histogram) Max() time.Duration { return time.Duration(h.largest) }

// Quantile returns a duration that the share q of the recorded ones does not
// exceed, for instance 0.99; too large by 1/64 at most. 0 if there is nothing.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.count))
	seen := uint64(0)
	for i, n := range h.buckets[:] {
		if seen += n; seen > rank {
			return time.Duration(min(upper(i), h.largest))
		}
	}
	return time.Duration(h.largest)
}

// Merge adds the durations that other has recorded.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.buckets[:] {
		h.buckets[i] += n
	}
	h.count += other.count
	h.largest = max(h.largest, other.largest)
}

func bucket(n uint64) int {
	if n < fine {
		return int(n)
	}
	shift := bits.Len64(n) - bits.Len64(fine)
	return shift*fine + int(n>>shift)
}

// upper is the largest value in a bucket.
func upper(bucket int) int64 {
	if bucket < 2*fine {
		return int64(bucket)
	}
	shift := bucket/fine - 1
	return int64(bucket-shift*fine+1)<<shift - 1
}

// GobEncode returns what GobDecode reads: the counts of the buckets that are not empty.
func (h *Histogram) GobEncode() ([]byte, error) {
	out := binary.AppendVarint(nil, h.largest)
	for i, n := range h.buckets[:] {
		if n > 0 {
			out = binary.AppendUvarint(binary.AppendUvarint(out, uint64(i)), n)
		}
	}
	return out, nil
}

// GobDecode replaces what was recorded by what another Histogram has encoded.
func (h *Histogram) GobDecode(b []byte) (err error) {
	*h = Histogram{}
	r := bytes.NewReader(b)
	if h.largest, err = binary.ReadVarint(r); err != nil {
		return err
	}
	for r.Len() > 0 {
		i, err := binary.ReadUvarint(r)
		if err != nil {
			return err
		}
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return err
		}
		if i >= uint64(len(h.buckets)) {
			return fmt.Errorf("bucket %d: want at most %d", i, len(h.buckets)-1)
		}
		h.buckets[i] = n
		h.count += n
	}
	return nil
}
