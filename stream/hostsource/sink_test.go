package hostsource

import (
	"testing"

	"github.com/watchtide/watchtide/stream"
)

var resumeNothing stream.Resume

// mustNew returns a source of this machine.
func mustNew(t testing.TB, collection string) *Source {
	t.Helper()
	s, err := New(Config{Collection: collection})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// countingSink counts changes and keeps nothing.
type countingSink struct{ changes int }

func (c *countingSink) Reset(string) error                { return nil }
func (c *countingSink) Upsert(stream.Resource) error      { c.changes++; return nil }
func (c *countingSink) Delete(string, uint64) error       { c.changes++; return nil }
func (c *countingSink) Commit(uint64) error               { return nil }
func (c *countingSink) Status(stream.State, string) error { return nil }
