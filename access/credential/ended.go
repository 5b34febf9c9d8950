package credential

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/watchtide/watchtide/access/refusal"
)

// maxEnded is the number of ended sessions that are remembered.
const maxEnded = 50_000

var errEnded = refusal.New(refusal.Revoked, "the session has ended")

// ended remembers sessions that their users have ended on this replica, so that copies of the
// cookie are useless there. It is a table of fixed size. Only a revocation ends a session on
// all replicas and for certain.
type ended struct {
	mu sync.Mutex
	// Guarded by mu.
	ids *simplelru.LRU[string, struct{}]
}

func newEnded() *ended {
	ids, err := simplelru.NewLRU[string, struct{}](maxEnded, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	return &ended{ids: ids}
}

func (e *ended) add(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ids.Add(id, struct{}{})
}

func (e *ended) has(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ids.Contains(id)
}
