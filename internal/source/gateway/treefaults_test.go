package gateway_test

import (
	"fmt"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// TestTree kills and restarts each of thirteen gateways while writing
// continues.
func TestTree(t *testing.T) {
	tr := newTree(t, streamtest.OwnRevision)
	tr.converge()
	for i, leaf := range tr.leaves() {
		tr.read(leaf, fmt.Sprint("reader ", i), nil)
	}
	for _, b := range tr.nodes {
		tr.resumeEverywhere(tr.leaves()[0])
		tr.beginWriting()
		tr.kill(b)
		tr.converge()
		tr.endWriting()
		tr.converge()
	}
	tr.resumeEverywhere(tr.leaves()[8])
	tr.settle()
}

// TestTreeIsRestored restores a backup of the upstream: the reset goes down the
// tree.
func TestTreeIsRestored(t *testing.T) {
	tr := newTree(t, streamtest.OwnRevision)
	tr.converge()
	for i, leaf := range tr.leaves() {
		tr.read(leaf, fmt.Sprint("reader ", i), nil)
	}
	tr.upstream.Restore("restored", tr.upstream.Revision()-20)
	tr.endpoint.Move()
	tr.endpoint.Catch(-1)
	tr.beginWriting()
	tr.converge()
	tr.endWriting()
	tr.converge()
	tr.resumeEverywhere(tr.leaves()[4])
	readers := tr.readers
	tr.settle()
	for _, r := range readers {
		if got := resetsOf(r.Connection); len(got) != 2 || got[1] != string(stream.ResetEpochChanged) {
			t.Errorf("%v: resets %q, want the initial one and epoch_changed", r, got)
		}
	}
}

func resetsOf(c *streamtest.Connection) (reasons []string) {
	for _, f := range c.Flushes {
		for _, e := range f.Events {
			if e.Type == stream.Reset {
				reasons = append(reasons, e.Reason)
			}
		}
	}
	return reasons
}
