package gateway

import (
	"cmp"
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

// topologyCache has the last answers. Requests wait for the one that makes theirs.
type topologyCache struct {
	mu   sync.Mutex // guards the following field
	last map[subscribers.Property]topologyAnswer
}

// topologyAnswer is an answer, and when it was made.
type topologyAnswer struct {
	at   time.Time
	body []byte
}

// handleTopology serves the topology.
func (g *settings) handleTopology(w http.ResponseWriter, r *http.Request) {
	query, p := problem.Query(r, "group")
	by, p := choiceOf(query, "group", subscribers.Kinds, p)
	if p != nil {
		problem.Write(w, p)
		return
	}
	writeJSONBody(w, g.topology.of(g, cmp.Or(by, subscribers.ByApplication)))
}

// of returns the topology with the groups of one of subscribers.Kinds.
func (c *topologyCache) of(g *settings, by subscribers.Property) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, now := c.last[by], time.Now()
	if last.body != nil && now.Sub(last.at) < topologyFor {
		return last.body
	}
	body, _ := json.Marshal(g.newTopology(now, by)) // everything in it can be marshalled
	if c.last == nil {
		c.last = map[subscribers.Property]topologyAnswer{}
	}
	c.last[by] = topologyAnswer{now, append(body, '\n')}
	return c.last[by].body
}

func (g *settings) newTopology(now time.Time, by subscribers.Property) topology.Topology {
	census := subscribers.TakeCensus(g.subscribers, g.shards.Carriers(), by, maxListedGroups)
	return topology.New(now, g.cfg.Instance, g.registry.Watches(), g.cfg.Views.Largest(math.MaxInt, ""), census)
}
