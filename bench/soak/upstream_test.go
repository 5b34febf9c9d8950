//go:build servers

package soak

import (
	"context"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// upstream is the origin of a watch. Its methods are called by one goroutine at a
// time. They access the upstream itself and not through the proxy.
type upstream interface {
	// address is where it serves.
	address() string
	// commit makes one transaction, and returns its revision.
	commit(ctx context.Context, writes []write) (revision uint64, err error)
	// list returns all resources, and their revision.
	list(ctx context.Context) ([]stream.Resource, uint64, error)
	// restart kills it and starts it with its data.
	restart() error
	// wipe makes it lose its content and start another revision order.
	wipe() error
}

// write is one change of a transaction. A nil value deletes.
type write struct {
	key   string
	value []byte
}

// change is a write at a revision.
func (w write) change(revision uint64) log.Change {
	r := stream.Resource{Key: w.key, Revision: revision, Value: w.value}
	return log.Change{Resource: r, Deleted: w.value == nil}
}
