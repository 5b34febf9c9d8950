package adapter

import (
	"crypto/rand"

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
