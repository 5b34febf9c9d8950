package cluster

import "sync/atomic"

// Result is how a question ended. It may be a label of a metric.
type Result string

// The results.
const (
	Allowed Result = "allowed" // the answer is yes
	Refused Result = "refused" // the answer is no
	Failed  Result = "failed"  // there was no answer
	Crowded Result = "crowded" // the question was not asked, since too many others waited
	Cached  Result = "cached"  // the question was not asked, since the answer no was known
)

// Results are all of them.
var Results = [...]Result{Allowed, Refused, Failed, Crowded, Cached}

// Stats are figures of the questions of one kind.
type Stats struct {
	Results map[Result]uint64 // since the start of the process
	AtOnce  int               // questions that are asked now
	Cached  int               // answers that are remembered
}

// Counts counts questions by their result. The zero value is ready.
type Counts struct{ of [len(Results)]atomic.Uint64 }

func (c *Counts) add(r Result) {
	for i, one := range Results {
		if one == r {
			c.of[i].Add(1)
		}
	}
}

func (c *Counts) all() map[Result]uint64 {
	out := map[Result]uint64{}
	for i, r := range Results {
		out[r] = c.of[i].Load()
	}
	return out
}
