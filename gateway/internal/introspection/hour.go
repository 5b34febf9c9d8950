package introspection

import "unsafe"

const (
	fineStep   = 1 // seconds
	coarseStep = 10
	fineKept   = 300 // five minutes
	coarseKept = 360 // an hour
)

// hour is the last hour of one watch: five minutes of samples of a second, and an hour of those of
// ten seconds. A second that nothing was recorded for is missing.
//
// Owned by the Recorder.
type hour struct {
	fine    [fineKept]sample
	coarse  [coarseKept]sample
	newest  [2]int64 // interval of each, in steps since 1970; 0: none
	pending counts   // of the ten seconds that have not ended
	of      int64    // which ten seconds these are
}

// hourBytes is what an hour takes.
const hourBytes = int64(unsafe.Sizeof(hour{}) + unsafe.Sizeof(entry{}))

// add adds the figures of a second, which must be later than those before.
func (h *hour) add(second int64, c *counts) {
	put(h.fine[:], &h.newest[0], second, c.sample())
	tens := second / coarseStep
	if tens != h.of || h.pending.seconds == 0 {
		h.of, h.pending = tens, *c
	} else {
		h.pending.then(c)
	}
	put(h.coarse[:], &h.newest[1], tens, h.pending.sample())
}

// put sets a sample of a ring. Intervals that were skipped are missing.
func put(ring []sample, newest *int64, interval int64, s sample) {
	for skipped := max(*newest+1, interval-int64(len(ring))+1); skipped < interval; skipped++ {
		ring[skipped%int64(len(ring))] = sample{}
	}
	*newest = interval
	ring[interval%int64(len(ring))] = s
}

// span returns the samples of the intervals from one on, up to the newest one that is not later
// than to. It starts at from.
func span(ring []sample, newest, from, to int64) []sample {
	out := make([]sample, 0, max(0, to-from+1))
	for at := from; at <= to; at++ {
		if at > newest || at <= newest-int64(len(ring)) {
			out = append(out, sample{})
			continue
		}
		out = append(out, ring[at%int64(len(ring))])
	}
	return out
}
