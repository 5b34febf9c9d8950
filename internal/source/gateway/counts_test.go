package gateway_test

import (
	"slices"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestFollowsDeclaredCounts: a gateway that follows a watch of counts has its groups, also after it was cut off.
func TestFollowsDeclaredCounts(t *testing.T) {
	upstream := streamtest.NewUpstream("e", streamtest.OwnRevision)
	endpoint := upstream.Replica()
	write := func(writes ...streamtest.Write) {
		upstream.Commit(1, writes...)
		endpoint.Catch(-1)
	}
	write(streamtest.Write{Key: "a", Value: streamtest.ValueOf(1)}, streamtest.Write{Key: "b", Value: streamtest.ValueOf(1)})
	registry := watch.NewRegistry()
	add(t, registry, "w", endpoint)
	declared := views.NewDeclared()
	t.Cleanup(declared.Close)
	g, err := view.ParseGrouping([]string{"n"}, "n")
	if err != nil {
		t.Fatal(err)
	}
	add(t, registry, "counts", declared.CountSource("w", func() (*watch.Watch, error) { return registry.Open("w") }, g))
	core := newNode(t)
	core.start(registry)

	edge := watch.NewRegistry()
	t.Cleanup(edge.Close)
	followed := add(t, edge, "counts", source(t, core.upstream(), "counts", ""))
	has := func(want ...string) {
		t.Helper()
		await(t, followed, func() bool { return slices.Equal(groupsOf(followed), want) })
	}
	has(`1={"count":2,"sum":2,"min":1,"max":1}`)
	write(streamtest.Write{Key: "b", Value: streamtest.ValueOf(2)})
	has(`1={"count":1,"sum":1,"min":1,"max":1}`, `2={"count":1,"sum":2,"min":2,"max":2}`)
	core.cut()
	write(streamtest.Write{Key: "a", Delete: true}, streamtest.Write{Key: "c", Value: streamtest.ValueOf(2)})
	core.serve()
	has(`2={"count":2,"sum":4,"min":2,"max":2}`)
}

// groupsOf returns the keys and values of a watch, in order.
func groupsOf(w *watch.Watch) (out []string) {
	for r := range w.Snapshot().Resources() {
		out = append(out, r.Key+"="+string(r.Value))
	}
	slices.Sort(out)
	return out
}
