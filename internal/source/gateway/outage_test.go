package gateway_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// replicas are two gateways that follow endpoints of one upstream, and a third one
// that follows the second.
type replicas struct {
	t        *testing.T
	upstream *streamtest.Upstream
	history  *streamtest.History
	ends     [2]*streamtest.Replica
	roots    [2]*watch.Watch
	behind   *watch.Watch
}

func newReplicas(t *testing.T, deletes streamtest.DeleteRevisions) *replicas {
	r := &replicas{t: t, upstream: streamtest.NewUpstream("e", deletes)}
	r.history = &streamtest.History{Truth: r.upstream.Truth(), DeletesUnnumbered: deletes != streamtest.OwnRevision}
	r.put("base")
	for i := range r.roots {
		registry := watch.NewRegistry()
		r.ends[i] = r.upstream.Replica()
		r.roots[i] = add(t, registry, "w", r.ends[i])
		n := newNode(t)
		n.start(registry)
		if i == 1 {
			registry := watch.NewRegistry()
			t.Cleanup(registry.Close)
			r.behind = add(t, registry, "w", source(t, n.upstream(), "w", ""))
		}
	}
	r.reaches(r.roots[0], r.roots[1], r.behind)
	return r
}

func (r *replicas) put(key string) { r.upstream.Commit(1, streamtest.Write{Key: key, Value: `1`}) }

func (r *replicas) delete(key string) { r.upstream.Commit(1, streamtest.Write{Key: key, Delete: true}) }

// reaches waits until watches are up to date.
func (r *replicas) reaches(watches ...*watch.Watch) {
	r.t.Helper()
	for _, w := range watches {
		await(r.t, w, func() bool {
			return w.Snapshot().Primed() && w.Snapshot().Revision() >= r.upstream.Revision() && w.Status().State == stream.InSync
		})
	}
}

// visit reads a watch from a position, and returns the last position.
func (r *replicas) visit(w *watch.Watch, replica string, from *streamtest.Mark) (*streamtest.Connection, *streamtest.Mark) {
	c := r.history.Connect(w, streamtest.Dial{Client: "c", Replica: replica, Slow: true, From: from})
	c.Drain()
	c.Close()
	return c, last(c.Marks())
}

// TestOutageIsReportedDownTheTree: a gateway missed the creation and deletion of a
// resource, since its upstream was lost meanwhile, and a client has that resource
// from another one. A third gateway, behind the first, stayed connected all the
// time. It must not resume the client's position either.
func TestOutageIsReportedDownTheTree(t *testing.T) {
	for _, deletes := range []streamtest.DeleteRevisions{streamtest.OwnRevision, streamtest.LastSeen, streamtest.NoRevision} {
		t.Run(fmt.Sprint(deletes), func(t *testing.T) {
			r := newReplicas(t, deletes)
			r.ends[1].Refuse(errors.New("connection refused"))
			r.put("ghost")
			r.ends[0].Catch(-1)
			r.reaches(r.roots[0])
			_, mark := r.visit(r.roots[0], "R0", nil)
			r.delete("ghost")
			r.put("other")
			for _, end := range r.ends {
				end.Catch(-1)
			}
			r.ends[1].Compact()
			r.ends[1].Refuse(nil)
			r.reaches(r.roots[1], r.behind)
			for name, w := range map[string]*watch.Watch{"R1": r.roots[1], "behind R1": r.behind} {
				c, _ := r.visit(w, name, mark)
				if c.Outcome() != log.OutcomeExpired {
					t.Errorf("%v is answered with %q by the one %s, want expired: %s", mark.Position, c.Outcome(), name, c.Describe())
				}
				if diff := c.State().Diff(r.upstream.State()); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
			if err := streamtest.CheckAll(r.history); err != nil {
				t.Error(err)
			}
		})
	}
}
