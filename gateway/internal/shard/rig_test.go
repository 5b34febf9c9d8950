package shard

import (
	"net/http"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/session"
)

// rig is two shards behind net/http on a network in memory.
type rig struct {
	*gatewaytest.Watches
	t       *testing.T
	deps    *session.Deps
	sockets *gatewaytest.Sockets
	shards  *Pump
	client  *http.Client
}

// newRig serves the named watches. change may be nil.
func newRig(t *testing.T, change func(*session.Deps), watches ...string) *rig {
	t.Helper()
	r := &rig{Watches: gatewaytest.NewWatches(t, watches...), t: t, sockets: gatewaytest.NewSockets()}
	r.deps = gatewaytest.NewDeps(r.Watches)
	if change != nil {
		change(r.deps)
	}
	r.shards = New(r.deps, r.sockets, 2, nil)
	t.Cleanup(r.shards.Abort)
	_, r.client = gatewaytest.Serve(t, r.Watches, r.deps, r.shards.Carry)
	return r
}

// get opens a stream and reads it as it arrives.
func (r *rig) get(path string) *gatewaytest.Exchange {
	r.t.Helper()
	return gatewaytest.Send(r.t, r.client, http.MethodGet, path)
}

// listOf returns how many streams are open, and the list of the first of them.
func listOf(d *session.Deps, s *Pump, watch string, limit int) (count int, all []introspection.Subscriber) {
	q := introspection.Query{Filter: introspection.Filter{Watch: watch}, Limit: limit}
	q.Ask(d.Subscribers, s.Carriers())
	return q.Count, q.List(d.Subscribers)
}
