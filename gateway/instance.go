package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/wire"
)

// instanceHeader names the process that answers.
const instanceHeader = "Watchtide-Instance"

// named names the process in every answer.
func (g *settings) named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(instanceHeader, g.cfg.Instance)
		next.ServeHTTP(w, r)
	})
}

// handleInstance says who this replica is, and how it is.
func (g *settings) handleInstance(w http.ResponseWriter, r *http.Request) {
	if _, p := problem.Query(r); p != nil {
		problem.Write(w, p)
		return
	}
	body, _ := json.Marshal(g.instance(time.Now())) // never fails: everything in it can be marshalled
	wire.WriteJSON(w, r, append(body, '\n'))
}

// replicasAnswer is what GET /v1/replicas answers, apart from the siblings.
type replicasAnswer struct {
	Instance   string                 `json:"instance"`
	Self       introspection.Instance `json:"self"`
	Configured bool                   `json:"configured"`
}

// handleReplicas says who the replicas are.
func (g *settings) handleReplicas(w http.ResponseWriter, r *http.Request) {
	if _, p := problem.Query(r); p != nil {
		problem.Write(w, p)
		return
	}
	siblings := g.siblings.Ask(r.Context())
	body, _ := json.Marshal(replicasAnswer{g.cfg.Instance, g.instance(time.Now()), len(g.cfg.Replicas) > 0}) // never fails
	body = append(bytes.TrimSuffix(body, []byte("}")), `,"siblings":`...)
	wire.WriteJSON(w, r, body, siblings, []byte("}\n"))
}

func (g *settings) instance(now time.Time) introspection.Instance {
	state := g.readiness(now)
	host, _ := os.Hostname() // empty if the system has none
	return introspection.Instance{
		Instance: g.cfg.Instance, Host: host, Version: g.cfg.Version, Started: g.started.UTC().Truncate(time.Millisecond), Uptime: now.Sub(g.started).Seconds(),
		Ready: state.ready(), Reasons: state.reasons(), Limits: g.limits(), Watches: g.instanceWatches(),
	}
}

// instanceWatches says how far this replica is with its watches, without those of templates.
func (g *settings) instanceWatches() []introspection.SiblingWatch {
	out := []introspection.SiblingWatch{}
	for _, w := range g.registry.Watches() {
		if w.Template() != nil {
			continue
		}
		v := w.Snapshot()
		s := v.Status()
		out = append(out, introspection.SiblingWatch{
			Name: w.Name(), Epoch: v.Epoch(), Revision: v.Revision(), State: s.State.String(), Since: s.Since.UTC().Truncate(time.Millisecond), Reason: s.Full(),
			Memory: introspection.MemoryOf(w.Memory()),
		})
	}
	return out
}

// limits says how much of what is limited is in use.
func (g *settings) limits() []introspection.Limit {
	bodies, bodiesWaiting := g.bodies.Bytes.Now()
	answers, answersWaiting := g.answers.Bytes.Now()
	snapshots, snapshotsWaiting := g.snapshots.Now()
	connections, most := g.doors.Now()
	views := g.views.Stats()
	all := g.memoryOfWatches()
	return []introspection.Limit{
		{Name: "streams", Used: int64(g.admission.Count()), Most: int64(g.cfg.MaxSubscribers)},
		{Name: "connections", Used: int64(connections), Most: int64(most)},
		{Name: "watches", Used: all.Used, Most: all.Most, Unit: "bytes"},
		{Name: "served", Used: all.Served, Most: all.MostServed, Unit: "bytes"},
		{Name: "views", Used: views.Bytes, Most: views.MaxBytes, Unit: "bytes"},
		{Name: "snapshots", Used: snapshots, Most: g.cfg.SnapshotBudget, Unit: "bytes", Waiting: snapshotsWaiting},
		{Name: "answers", Used: answers, Most: g.cfg.AnswerBudget, Unit: "bytes", Waiting: answersWaiting},
		{Name: "bodies", Used: bodies, Most: g.cfg.BodyBudget, Unit: "bytes", Waiting: bodiesWaiting},
	}
}

// memoryOfWatches is what all watches hold, and the ceiling that they share.
func (g *settings) memoryOfWatches() (all introspection.Memory) {
	for _, w := range g.registry.Watches() {
		own, shared := introspection.MemoryOf(w.Memory()), introspection.MemoryOf(w.SharedMemory())
		all.Used, all.Served = all.Used+own.Used, all.Served+own.Served
		all.Most, all.MostServed = max(all.Most, shared.Most), max(all.MostServed, shared.MostServed)
	}
	return all
}
