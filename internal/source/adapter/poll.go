package adapter

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// NewEpoch names the revision order of one source: no other has the same. It has 12
// letters of 32, which is 60 bits.
func NewEpoch() string { return rand.Text()[:12] }

// PolledChange is a change of one key.
type PolledChange struct {
	Key   string
	Value []byte // JSON on one line; nil: it is gone
}

// SendPolled sends changes as one transaction.
func SendPolled(sink stream.Sink, changes []PolledChange, revision uint64) error {
	for _, c := range changes {
		if err := c.send(sink, revision); err != nil {
			return err
		}
	}
	return sink.Commit(revision)
}

func (c PolledChange) send(sink stream.Sink, revision uint64) error {
	if c.Value == nil {
		return sink.Delete(c.Key, revision)
	}
	return sink.Upsert(stream.Resource{Key: c.Key, Revision: revision, Value: c.Value})
}

// PauseFor waits for a time. It returns why ctx has ended, if it has.
func PauseFor(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// PauseUntil waits until a time. It returns why ctx has ended, if it has.
//
// A source whose upstream requested a wait waits at the start of the next Watch
// call, and not at the end of this one: by then ingest has reported that the
// upstream is lost.
func PauseUntil(ctx context.Context, t time.Time) error { return PauseFor(ctx, time.Until(t)) }
