package soak

import (
	"context"

	"github.com/watchtide/watchtide/stream"
)

// upstream is where a watch comes from. Its methods are called by one goroutine at a
// time. They go to the upstream itself and not through the proxy.
type upstream interface {
	// address is where it serves.
	address() string
	// commit makes one transaction, and returns its revision.
	commit(ctx context.Context, writes []write) (revision uint64, err error)
	// list returns all that there is, and the revision of that.
	list(ctx context.Context) ([]stream.Resource, uint64, error)
	// restart ends it without a word and starts it with what it had.
	restart() error
	// wipe makes it lose its content and begin another revision order.
	wipe() error
}

// write is one change of a transaction. A nil value deletes.
type write struct {
	key   string
	value []byte
}

// change is what a write is at a revision.
func (w write) change(revision uint64) stream.Change {
	r := stream.Resource{Key: w.key, Revision: revision, Value: w.value}
	return stream.Change{Resource: r, Deleted: w.value == nil}
}
