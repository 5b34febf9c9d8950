package gateway

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestMetricsFollowConventions runs the linter of promtool over everything that is
// served.
func TestMetricsFollowConventions(t *testing.T) {
	r := newAPIRig(t, Config{})
	r.get("/v1/watches/notes/changes?wait=0s").want(t, 200, "")
	problems, err := testutil.GatherAndLint(r.gateway.metrics.Registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	names := 0
	for _, f := range gather(t, r.gateway) {
		if name := f.GetName(); strings.HasPrefix(name, metrics.Namespace) {
			names++
		} else if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s has no prefix", name)
		}
	}
	if names < 20 {
		t.Errorf("only %d metrics are served", names)
	}
}

func gather(t *testing.T, g *Gateway) []*dto.MetricFamily {
	t.Helper()
	families, err := g.metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// counter returns the value of a counter or gauge, or the number of values of a
// histogram, with the labels given as name, value, …; -1 if there is none.
func counter(t *testing.T, g *Gateway, name string, labels ...string) float64 {
	t.Helper()
	for _, f := range gather(t, g) {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && hasLabels(m, labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}

// sum returns the sum of all values of a histogram.
func sum(t *testing.T, g *Gateway, name string) float64 {
	t.Helper()
	for _, f := range gather(t, g) {
		if f.GetName() == name {
			return f.GetMetric()[0].GetHistogram().GetSampleSum()
		}
	}
	t.Errorf("there is no %s", name)
	return 0
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

func TestWatchMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7, gatewaytest.Resource("a", 5, `1`), gatewaytest.Resource("b", 6, `1`))
		r.Do("services", func(s stream.Sink) error {
			if err := s.Delete("a", 8); err != nil {
				return err
			}
			return s.Commit(8)
		})
		synctest.Wait()
		time.Sleep(time.Minute)
		for name, want := range map[string]float64{
			"watchtide_watch_revision":            8,
			"watchtide_watch_resources":           1,
			"watchtide_watch_tombstones":          1,
			"watchtide_watch_horizon_age_seconds": 60,
			"watchtide_watch_subscribers":         0,
		} {
			if got := counter(t, r.gateway, name, "watch", "services"); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if got := counter(t, r.gateway, "watchtide_watch_log_bytes", "watch", "services"); got <= 0 {
			t.Errorf("log bytes: %v", got)
		}
		for state, want := range map[string]float64{"priming": 0, "in_sync": 1, "resyncing": 0, "stale": 0, "catching_up": -1} {
			if got := counter(t, r.gateway, "watchtide_watch_state", "state", state); got != want {
				t.Errorf("state %s is %v, want %v", state, got, want)
			}
		}
		if got := counter(t, r.gateway, "watchtide_upstream_resyncs_total", "reason", "initial"); got != 1 {
			t.Errorf("initial resyncs: %v", got)
		}
		if got := counter(t, r.gateway, "watchtide_upstream_events_total", "type", "upsert"); got != 2 {
			t.Errorf("upserts from upstream: %v", got)
		}
		r.Registry.Remove("services")
		if got := counter(t, r.gateway, "watchtide_watch_revision"); got != -1 {
			t.Errorf("a watch that was removed still has a revision: %v", got)
		}
	})
}

// TestPollMetrics checks what one long poll counts.
func TestPollMetrics(t *testing.T) {
	r := newAPIRig(t, Config{})
	answer := r.get("/v1/watches/hosts/changes")
	answer.want(t, 200, "")
	r.get("/v1/watches/hosts/changes?wait=0s&after=hosts@e1-7").want(t, 200, "")
	r.get("/v1/watches/hosts/changes?wait=0s&after=hosts@e0-7").want(t, 200, "")
	for _, want := range []struct {
		name   string
		value  float64
		labels []string
	}{
		{"watchtide_subscribers", 0, []string{"transport", "poll"}},
		{"watchtide_events_sent_total", 6, []string{"transport", "poll", "type", "upsert"}},
		{"watchtide_events_sent_total", 2, []string{"transport", "poll", "type", "reset"}},
		{"watchtide_snapshots_sent_total", 2, []string{"transport", "poll"}},
		{"watchtide_resumes_total", 1, []string{"transport", "poll", "outcome", "snapshot"}},
		{"watchtide_resumes_total", 1, []string{"transport", "poll", "outcome", "exact"}},
		{"watchtide_resumes_total", 1, []string{"transport", "poll", "outcome", "epoch_changed"}},
		{"watchtide_end_of_snapshot_seconds", 3, nil},
		{"watchtide_conflated_changes_total", 0, []string{"transport", "poll"}},
	} {
		if got := counter(t, r.gateway, want.name, want.labels...); got != want.value {
			t.Errorf("%s%v is %v, want %v", want.name, want.labels, got, want.value)
		}
	}
	if got := counter(t, r.gateway, "watchtide_sent_bytes_total", "transport", "poll"); got <= float64(len(answer.text)) {
		t.Errorf("%v bytes counted, the first answer has %d", got, len(answer.text))
	}
}

func TestMetricsAreServed(t *testing.T) {
	r := newAPIRig(t, Config{})
	got := r.get("/metrics")
	got.want(t, 200, "")
	if !strings.Contains(got.text, `watchtide_watch_revision{watch="hosts"} 7`) {
		t.Errorf("%.2000s", got.text)
	}
}

// TestHotPathAllocatesNothing checks the methods that are called for each flush.
func TestHotPathAllocatesNothing(t *testing.T) {
	registry := watch.NewRegistry()
	defer registry.Close()
	m := metrics.New(registry)
	allocs := testing.AllocsPerRun(100, func() {
		m.EventsOut(metrics.SSE, stream.Upsert, 3)
		m.BytesOut(metrics.SSE, 100)
		m.CommitToWrite(time.Millisecond, "")
		m.Snapshot(metrics.SSE)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
