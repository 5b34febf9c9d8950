package gateway

import (
	"encoding/json"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/subscribers"
	"github.com/watchtide/watchtide/gateway/internal/topology"
)

// topologyFor is how long an answer is used for further requests: very many pages of operators cost
// one walk over the subscribers.
const topologyFor = time.Second

// topologyCache has the last answer. Requests wait for the one that makes it.
type topologyCache struct {
	mu   sync.Mutex // guards the following fields
	at   time.Time
	body []byte
}

// handleTopology serves the topology.
func (g *settings) handleTopology(w http.ResponseWriter, r *http.Request) {
	if _, p := problem.Query(r); p != nil {
		problem.Write(w, p)
		return
	}
	writeJSONBody(w, g.topology.of(g))
}

func (c *topologyCache) of(g *settings) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.at) >= topologyFor || c.body == nil {
		body, _ := json.Marshal(g.newTopology(now)) // everything in it can be marshalled
		c.at, c.body = now, append(body, '\n')
	}
	return c.body
}

func (g *settings) newTopology(now time.Time) topology.Topology {
	census := subscribers.TakeCensus(g.subscribers, g.shards.Carriers(), maxListedGroups)
	return topology.New(now, g.cfg.Instance, g.registry.Watches(), g.cfg.Views.Largest(math.MaxInt, ""), census)
}
