package commands

import (
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestOptionsArrive: what the configuration says of a watch and of the gateway reaches them.
func TestOptionsArrive(t *testing.T) {
	c := config.Default()
	c.Stream.Heartbeat, c.HTTP.Hosts, c.Operations.Replicas = time.Minute, []string{"b"}, []string{"http://10.0.0.7:8081"}
	c.HTTP.AllowedHeaders = []string{"X-Tenant"}
	if g := gatewayConfig(c); g.Heartbeat != time.Minute || !slices.Equal(g.Hosts, []string{"b"}) || len(g.Replicas) != 1 || !g.Metrics ||
		!slices.Equal(g.AllowedHeaders, []string{"X-Tenant"}) {
		t.Errorf("the gateway has %+v", g)
	}
	history := watch.Retention{MaxAge: time.Minute, MaxDeletes: 5, MaxBytes: 6}
	got := watchConfig(config.Watch{Name: "w", Source: "s", Required: true, Linger: 1, History: history, SnapshotTimeout: 2, LabelsAt: "meta.labels", Memory: 7})
	want := watch.Config{
		Name: "w", SourceName: "s", OnDemand: true, Required: true, Linger: 1, SnapshotTimeout: 2, LabelsAt: "meta.labels", MaxBytes: 7, History: history,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestSourceArrives: the longest wait and the type are those of the source.
func TestSourceArrives(t *testing.T) {
	u := newUpstreams(slog.New(slog.DiscardHandler), nil, nil, nil).next(&config.Config{Sources: []config.Source{{Name: "s", Type: config.Store, RetryMax: time.Minute}}})
	got, err := u.configure(watch.NewRegistry(), config.Watch{Name: "w", Source: "s"}, "", u.logger)
	if err != nil || got.Backoff.Max != time.Minute || got.SourceType != "store" {
		t.Errorf("at most %v of a source of type %q, %v", got.Backoff.Max, got.SourceType, err)
	}
	if got.Close != nil {
		got.Close()
	}
	if of, err := u.configure(watch.NewRegistry(), config.Watch{Name: "v", ViewOf: "w"}, "", u.logger); err != nil || of.SourceType != "view" {
		t.Errorf("a view has a source of type %q, %v", of.SourceType, err)
	}
}

// TestMemoryIsReturnedAfterARush checks that the command returns memory, which the
// library leaves to its user.
func TestMemoryIsReturnedAfterARush(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	gatewayConfig(&config.Config{}).AfterRush()
	runtime.ReadMemStats(&after)
	if n := after.NumForcedGC - before.NumForcedGC; n < 2 {
		t.Errorf("%d collections were asked for, want 2", n)
	}
}

// Off in a configuration means the same as a negative duration where it is used.
func TestOffIsNegative(t *testing.T) {
	if config.Off >= 0 {
		t.Errorf("Off is %d", config.Off)
	}
}
