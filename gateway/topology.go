package gateway

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/problem"
)

// topologyFor is how long an answer is used for further requests: very many pages of operators cost
// one walk over the subscribers.
const topologyFor = time.Second

// topologyCache has the last answers. Requests wait for the one that makes theirs.
type topologyCache struct {
	mu   sync.Mutex // guards the following field
	last map[introspection.Property]topologyAnswer
}

// topologyAnswer is an answer, and when it was made.
type topologyAnswer struct {
	at   time.Time
	body []byte
}

// handleTopology serves the topology.
func (g *settings) handleTopology(w http.ResponseWriter, r *http.Request) {
	query, p := problem.Query(r, "group")
	by, p := choiceOf(query, "group", introspection.Kinds, p)
	if p != nil {
		problem.Write(w, p)
		return
	}
	writeJSONBody(w, g.topology.of(g, cmp.Or(by, introspection.ByApplication)))
}

// of returns the topology with the groups of one of introspection.Kinds.
func (c *topologyCache) of(g *settings, by introspection.Property) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, now := c.last[by], time.Now()
	if last.body != nil && now.Sub(last.at) < topologyFor {
		return last.body
	}
	body, _ := json.Marshal(g.newTopology(now, by)) // everything in it can be marshalled
	if c.last == nil {
		c.last = map[introspection.Property]topologyAnswer{}
	}
	c.last[by] = topologyAnswer{now, append(body, '\n')}
	return c.last[by].body
}

func (g *settings) newTopology(now time.Time, by introspection.Property) introspection.Topology {
	census := introspection.TakeCensus(g.subscribers, g.shards.Carriers(), by, maxListedGroups)
	return introspection.NewTopology(now, g.cfg.Instance, g.registry.Watches(), g.views.Largest(math.MaxInt, ""), census)
}
