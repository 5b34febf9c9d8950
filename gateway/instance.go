package gateway

import (
	"net/http"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
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

// inUse says how much of what is limited is in use.
func (g *settings) inUse() []introspection.Limit {
	bodies, bodiesWaiting := g.bodies.Bytes.Now()
	answers, answersWaiting := g.answers.Bytes.Now()
	snapshots, snapshotsWaiting := g.snapshots.Now()
	connections, most := g.doors.Now()
	views := g.views.Stats()
	all := introspection.MemoryOfWatches(g.registry.Watches())
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
