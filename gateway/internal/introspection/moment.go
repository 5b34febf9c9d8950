package introspection

import "time"

// Moment is when a change became visible to subscribers, and how old it was then.
type Moment struct {
	At  int64         // see Nanos; 0: not known
	Age time.Duration // 0: not known
}

// Earlier returns the earlier one of two moments; one that is not known is never.
func (m Moment) Earlier(other Moment) Moment {
	if m.At == 0 || other.At != 0 && other.At < m.At {
		return other
	}
	return m
}
