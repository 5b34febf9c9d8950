package listing

import (
	"runtime"
	"sync/atomic"

	"github.com/watchtide/watchtide/internal/storage"
)

// newest caches the place of the newest resource of a state: very many deletes may follow it.
// The zero value is empty. Any number of goroutines may use it.
type newest struct {
	of atomic.Pointer[newestOf]
}

// newestOf is the newest resource of the state at a seq. Static after construction.
type newestOf struct {
	generation, seq uint64
	revision        uint64 // its place; 0: there is no resource
}

func (n *newest) get(v *storage.Version) uint64 {
	if known := n.of.Load(); known != nil && known.generation == v.Generation && known.seq == v.Seq {
		return known.revision
	}
	found := &newestOf{v.Generation, v.Seq, findNewest(v)}
	n.of.Store(found)
	return found.revision
}

// findNewest looks for the newest resource, from the tail on.
func findNewest(v *storage.Version) uint64 {
	looked := 0
	for i := len(v.Segments) - 1; i >= 0; i-- {
		entries := v.Entries(i)
		for j := len(entries) - 1; j >= 0; j-- {
			if e := &entries[j]; !e.Is(storage.IsDelete) && e.Visible(v.Seq) {
				return e.Revision
			}
			if looked++; looked%storage.TurnEntries == 0 {
				runtime.Gosched() // let others run
			}
		}
	}
	return 0
}
