package streamtest

import (
	"maps"

	"github.com/watchtide/watchtide/stream"
)

// UpstreamState is what an upstream had after a transaction.
type UpstreamState struct {
	Epoch     string // the source's name for it
	Revision  uint64
	Resources map[string]stream.Resource // must not be modified
}

// States returns all states that the upstream has had, in order.
func (t *Truth) States() (all []UpstreamState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.epochs {
		for _, txn := range e.txns {
			all = append(all, UpstreamState{e.name, txn.Revision, maps.Clone(txn.resources)})
		}
	}
	return all
}
