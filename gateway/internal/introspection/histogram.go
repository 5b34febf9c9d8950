package introspection

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// Each power of two of nanoseconds has steps buckets, so that a quantile is off by a
	// tenth at most.
	stepBits = 2
	steps    = 1 << stepBits
	// lowest is the exponent of the first bucket, which starts at 16 µs and has everything
	// below it too; the last one ends at 69 s, and has everything above.
	lowest  = 14
	highest = 36
	buckets = (highest - lowest) * steps
)

// bucketOf returns the bucket of a duration.
func bucketOf(d time.Duration) int {
	if d < 1<<lowest {
		return 0
	}
	exponent := bits.Len64(uint64(d)) - 1
	step := int(d>>(exponent-stepBits)) & (steps - 1)
	return min((exponent-lowest)*steps+step, buckets-1)
}

// startOf returns the least duration of a bucket; of the one after the last, where that ends.
func startOf(bucket int) time.Duration {
	return time.Duration(steps+bucket%steps) << (lowest + bucket/steps - stepBits)
}

// distribution counts durations by bucket.
type distribution struct {
	all uint64
	of  [buckets]uint32
}

func (d *distribution) add(o *distribution) {
	if o.all == 0 {
		return
	}
	d.all += o.all
	for i, n := range o.of {
		d.of[i] += n
	}
}

// quantile returns the duration, in milliseconds, that a share of the durations does not exceed;
// unknown if there are none. Durations are taken to be spread evenly over their bucket.
func (d *distribution) quantile(share float64) float32 {
	if d.all == 0 {
		return unknownValue
	}
	left, bucket := share*float64(d.all), 0
	for left > float64(d.of[bucket]) && bucket < buckets-1 {
		left -= float64(d.of[bucket])
		bucket++
	}
	from, to := startOf(bucket), startOf(bucket+1)
	return milliseconds(float64(from) + left/float64(max(1, d.of[bucket]))*float64(to-from))
}

func milliseconds(nanos float64) float32 { return float32(nanos / float64(time.Millisecond)) }

// counted is a distribution that many goroutines add to.
type counted [buckets]atomic.Uint32

// take moves everything that was counted since the last call to d, which must be empty.
func (c *counted) take(d *distribution) {
	for i := range c {
		if c[i].Load() > 0 { // most are not
			d.of[i] = c[i].Swap(0)
			d.all += uint64(d.of[i])
		}
	}
}
