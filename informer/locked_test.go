package informer

import (
	"maps"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// locked is a sink whose committed state a test waits for, in real time.
type locked struct {
	*sink
	of     *sink
	states chan map[string]string
}

func newLocked() *locked {
	s := newSink()
	return &locked{sink: s, of: s, states: make(chan map[string]string, 1000)}
}

var _ stream.Sink = (*locked)(nil)

func (l *locked) Commit(revision uint64) error {
	l.states <- maps.Clone(l.values)
	return l.sink.Commit(revision)
}

// await waits until a state was committed.
func (l *locked) await(t *testing.T, want map[string]string) {
	t.Helper()
	late := time.NewTimer(15 * time.Second)
	defer late.Stop()
	for {
		select {
		case state := <-l.states:
			if maps.Equal(state, want) {
				return
			}
		case <-late.C:
			t.Fatalf("there is no commit of %v", want)
		}
	}
}
