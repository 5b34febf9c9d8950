package gateway

import (
	"net/http"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/conversation"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/subscribers"
)

// shardRig is two shards behind net/http on a network in memory.
type shardRig struct {
	*gatewaytest.Watches
	t       *testing.T
	deps    *conversation.Deps
	sockets *gatewaytest.Sockets
	shards  *shards
	client  *http.Client
}

// newShardRig serves the named watches. change may be nil.
func newShardRig(t *testing.T, change func(*conversation.Deps), watches ...string) *shardRig {
	t.Helper()
	r := &shardRig{Watches: gatewaytest.NewWatches(t, watches...), t: t, sockets: gatewaytest.NewSockets()}
	r.deps = gatewaytest.NewDeps(r.Watches)
	if change != nil {
		change(r.deps)
	}
	r.shards = newShards(r.deps, r.sockets, 2, nil)
	t.Cleanup(r.shards.abort)
	_, r.client = gatewaytest.Serve(t, r.Watches, r.deps, r.shards.carry)
	return r
}

// get opens a stream and reads it as it arrives.
func (r *shardRig) get(path string) *gatewaytest.Exchange {
	r.t.Helper()
	return gatewaytest.Send(r.t, r.client, http.MethodGet, path)
}

// listOf returns how many streams are open, and the list of the first of them.
func listOf(d *conversation.Deps, s *shards, watch string, limit int) (count int, all []subscribers.Subscriber) {
	q := subscribers.Query{Watch: watch, Limit: limit}
	q.Ask(d.Subscribers, s.carriers())
	return q.Count, q.List(d.Subscribers)
}
