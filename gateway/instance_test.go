package gateway

import (
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/session"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestInstance checks that the instance is named wherever figures are served, and
// at the start of a stream.
func TestInstance(t *testing.T) {
	r := newAPIRig(t, Config{Instance: "i-1"})
	const want = `"instance":"i-1"`
	for _, path := range []string{"/v1/watches", "/v1/subscribers", "/v1/series", "/v1/watches/hosts/events?until=" + session.UntilEndOfSnapshot} {
		if got := r.get(path); strings.Count(got.text, want) != 1 {
			t.Errorf("%s: %.300s, want %s once", path, got.text, want)
		}
	}
	answer, err := r.grpc.ListWatches(t.Context(), &api.ListWatchesRequest{})
	if err != nil || answer.GetInstance() != "i-1" {
		t.Errorf("over gRPC: %q, %v", answer.GetInstance(), err)
	}
}

// TestInstancesDiffer checks that instances differ unless they are given a name.
func TestInstancesDiffer(t *testing.T) {
	registry := watch.NewRegistry()
	defer registry.Close()
	one, two := Config{Registry: registry}.withDefaults(), Config{Registry: registry}.withDefaults()
	if one.Instance == two.Instance || len(one.Instance) != 12 || one.check() != nil {
		t.Errorf("instances %q and %q", one.Instance, two.Instance)
	}
	for _, bad := range []string{"a b", `"`, strings.Repeat("x", 65)} {
		if _, err := New(Config{Registry: registry, Instance: bad}); err == nil || !strings.Contains(err.Error(), "Instance") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
