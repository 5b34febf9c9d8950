package gateway

import (
	"cmp"
	"crypto/x509"
	"errors"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/internal/cluster"
	"github.com/watchtide/watchtide/internal/frame"
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
	m := metrics.New(registry, "test", "test")
	now := time.Now()
	allocs := testing.AllocsPerRun(100, func() {
		m.EventsOut(frame.SSE.String(), stream.Upsert, 3)
		m.BytesOut(frame.SSE.String(), 100)
		m.Written(now, now, time.Second, "")
		m.Snapshot(frame.SSE.String())
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// TestBuildInfo checks what the gateway says of the program, and that nothing names the
// process: the label instance belongs to Prometheus.
func TestBuildInfo(t *testing.T) {
	r := newAPIRig(t, Config{Version: "1.2.3", Commit: "0123abc", Instance: "i-1"})
	if got := counter(t, r.gateway, "watchtide_build_info", "version", "1.2.3", "revision", "0123abc", "goversion", runtime.Version()); got != 1 {
		t.Errorf("build info: %v", got)
	}
	for _, f := range gather(t, r.gateway) {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "instance" || l.GetValue() == "i-1" {
					t.Errorf("%s has the label %v", f.GetName(), l)
				}
			}
		}
	}
}

// TestFreshnessMetrics checks what an alert about a stale watch is made of.
func TestFreshnessMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Add(watch.Config{Name: "asleep", OnDemand: true})
		want := func(connected, outOfSync float64) {
			t.Helper()
			synctest.Wait()
			if got := counter(t, r.gateway, "watchtide_upstream_connected", "watch", "services"); got != connected {
				t.Errorf("connected is %v, want %v", got, connected)
			}
			if got := counter(t, r.gateway, "watchtide_watch_out_of_sync_seconds", "watch", "services"); got != outOfSync {
				t.Errorf("out of sync for %v s, want %v s", got, outOfSync)
			}
		}
		time.Sleep(time.Minute)
		want(0, 60)
		r.Prime("services", 7, gatewaytest.Resource("a", 5, `1`))
		want(1, 0)
		time.Sleep(time.Minute)
		want(1, 0)
		r.Do("services", func(stream.Sink) error { return stream.ErrStalled })
		want(0, 0) // it may be back at once
		time.Sleep(time.Hour)
		want(0, 3600)
		r.Do("services", func(s stream.Sink) error {
			return errors.Join(s.Reset("e"), s.Upsert(gatewaytest.Resource("a", 5, `1`)), s.Upsert(gatewaytest.Resource("b", 5, `1`)))
		})
		synctest.Wait()
		if got := counter(t, r.gateway, "watchtide_watch_loading_resources", "watch", "services"); got != 2 {
			t.Errorf("%v resources are being loaded, want 2", got)
		}
		r.Do("services", func(s stream.Sink) error { return s.Commit(8) })
		synctest.Wait()
		if got := counter(t, r.gateway, "watchtide_watch_loading_resources", "watch", "services"); got != -1 {
			t.Errorf("%v resources are being loaded by a watch that has caught up", got)
		}
		r.Do("services", func(s stream.Sink) error { return errors.Join(s.Commit(9), s.Status(stream.InSync, "")) })
		want(1, 0)
		for _, name := range []string{"watchtide_upstream_connected", "watchtide_watch_out_of_sync_seconds"} {
			if got := counter(t, r.gateway, name, "watch", "asleep"); got != -1 {
				t.Errorf("%s of a watch that nobody has asked for: %v", name, got)
			}
		}
	})
}

// TestRequestsAreCounted checks the labels of requests: nothing in them comes from clients.
func TestRequestsAreCounted(t *testing.T) {
	r := newAPIRig(t, Config{HTTPSettings: HTTPSettings{Hosts: []string{"known"}}})
	for _, path := range []string{"/v1/watches", "/v1/watches/hosts", "/v1/watches/hosts/resources/default/a", "/v1/watches/nothing", "/nothing", "/readyz", "/"} {
		r.get(path)
	}
	r.get("/v1/watches/hosts/changes?wait=0s")
	for _, ask := range []struct{ method, path, host string }{
		{"PUT", "/v1/watches/hosts/events", ""}, {"BREW", "/v1/watches", ""}, {"GET", "/v1/watches/hosts", "foreign"},
	} {
		req := httptest.NewRequest(ask.method, ask.path, nil)
		req.Host = cmp.Or(ask.host, "known")
		r.gateway.Handler().ServeHTTP(httptest.NewRecorder(), req)
	}
	for _, want := range []struct{ route, method, code string }{
		{"/v1/watches", "GET", "200"},
		{"/v1/watches/{watch}", "GET", "200"},
		{"/v1/watches/{watch}/resources/*", "GET", "200"},
		{"/v1/watches/{watch}", "GET", "404"},
		{"other", "GET", "404"},
		{"/readyz", "GET", "503"},
		{"/", "GET", "200"},
		{"/v1/watches/{watch}/changes", "GET", "200"},
		{"other", "PUT", "405"},
		{"other", "other", "405"},
		{"/v1/watches/{watch}", "GET", "421"},
	} {
		if got := counter(t, r.gateway, "watchtide_http_requests_total", "route", want.route, "method", want.method, "code", want.code); got != 1 {
			t.Errorf("%v is counted %v times, want once", want, got)
		}
	}
	for _, f := range gather(t, r.gateway) {
		if f.GetName() == "watchtide_http_requests_total" && len(f.GetMetric()) != 11 {
			t.Errorf("%d series, want 11: %v", len(f.GetMetric()), f.GetMetric())
		}
	}
}

// TestStreamsAreCountedWhenTheyBegin checks that a stream that lasts is counted already,
// whichever pump carries it.
func TestStreamsAreCountedWhenTheyBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		x := r.get("/v1/events?watch=services")
		synctest.Wait()
		wantOpen(t, x)
		if got := counter(t, r.gateway, "watchtide_http_requests_total", "route", "/v1/events", "method", "GET", "code", "200"); got != 1 {
			t.Errorf("an open stream is counted %v times, want once", got)
		}
	})
}

// TestCertificateMetrics checks that the expiry is that of the newest certificate.
func TestCertificateMetrics(t *testing.T) {
	r := newAPIRig(t, Config{})
	now := func(want float64) {
		t.Helper()
		if got := counter(t, r.gateway, "watchtide_certificate_expiry_timestamp_seconds", "listener", "http"); got != want {
			t.Errorf("the certificate expires at %v, want %v", got, want)
		}
	}
	now(-1)
	for _, at := range []int64{1_900_000_000, 2_000_000_000} {
		if err := r.gateway.Reload(Config{Certificates: map[string]*x509.Certificate{"http": {NotAfter: time.Unix(at, 0)}}}); err != nil {
			t.Fatal(err)
		}
		now(float64(at))
	}
}

// TestStoreMetrics checks that they are those of now, by source.
func TestStoreMetrics(t *testing.T) {
	d := stream.DiskStats{FileBytes: 100, FreeBytes: 60, Commits: 4, Waited: 2 * time.Second}
	r := newAPIRig(t, Config{Stores: func() map[string]stream.DiskStats { return map[string]stream.DiskStats{"local": d} }})
	d.Failed = true
	for name, want := range map[string]float64{"file_bytes": 100, "free_bytes": 60, "commits_total": 4, "commit_seconds_total": 2, "failed": 1} {
		if got := counter(t, r.gateway, "watchtide_store_"+name, "source", "local"); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// TestClusterMetrics checks that they are those of now, by kind.
func TestClusterMetrics(t *testing.T) {
	s := cluster.Stats{Results: map[cluster.Result]uint64{cluster.Allowed: 4, cluster.Failed: 2}, AtOnce: 3, Cached: 5}
	r := newAPIRig(t, Config{Cluster: func() map[string]cluster.Stats { return map[string]cluster.Stats{"token": s} }})
	s.AtOnce = 7
	for name, want := range map[string]float64{"reviews_in_flight": 7, "answers": 5} {
		if got := counter(t, r.gateway, "watchtide_cluster_"+name, "kind", "token"); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := counter(t, r.gateway, "watchtide_cluster_reviews_total", "kind", "token", "result", "failed"); got != 2 {
		t.Errorf("%v reviews have failed, want 2", got)
	}
}

// TestJournalMetrics checks that they are those of now.
func TestJournalMetrics(t *testing.T) {
	s := watch.JournalStats{FileBytes: 100, FreeBytes: 60, Commits: 4, Written: 7, Waited: 2 * time.Second, Behind: time.Second}
	r := newAPIRig(t, Config{Journal: func() watch.JournalStats { return s }})
	s.Failed = true
	for name, want := range map[string]float64{
		"file_bytes": 100, "free_bytes": 60, "commits_total": 4, "commit_seconds_total": 2, "changes_total": 7, "behind_seconds": 1, "failed": 1,
	} {
		if got := counter(t, r.gateway, "watchtide_journal_"+name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// TestOriginMetrics checks that a change is measured from its time in the upstream, if it has
// one, by every transport.
func TestOriginMetrics(t *testing.T) {
	const name = "watchtide_origin_to_write_seconds"
	for how, begin := range map[string]func(*rig){
		"SSE":    func(r *rig) { r.get("/v1/events?watch=a") },
		"NDJSON": func(r *rig) { r.get("/v1/events?watch=a&format=ndjson") },
		"poll":   func(r *rig) { r.dial(rawGet("/v1/watches/a/changes?after=a@e1-1")) },
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{}, "a")
				r.Prime("a", 1)
				begin(r)
				synctest.Wait()
				write := func(revision uint64, ages ...time.Duration) {
					r.Do("a", func(s stream.Sink) error {
						for _, age := range ages {
							s.SetTimestamp(time.Now().Add(-age))
						}
						return errors.Join(s.Upsert(gatewaytest.Resource("k", revision, "1")), s.Commit(revision))
					})
					synctest.Wait()
				}
				write(2, time.Second, 3*time.Second, 2*time.Second)
				if got := counter(t, r.gateway, name); got != 1 || sum(t, r.gateway, name) != 3 {
					t.Errorf("%v changes in %v s, want one in 3 s, of the oldest", got, sum(t, r.gateway, name))
				}
				write(3)
				if got := counter(t, r.gateway, name); got != 1 {
					t.Errorf("a change without a time is measured: %v", got)
				}
			})
		})
	}
}

// TestOriginOfTheFuture checks that clocks that differ do not make a time negative.
func TestOriginOfTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1)
		r.get("/v1/events?watch=a")
		synctest.Wait()
		r.Do("a", func(s stream.Sink) error {
			s.SetTimestamp(time.Now().Add(time.Hour))
			return errors.Join(s.Upsert(gatewaytest.Resource("k", 2, "1")), s.Commit(2))
		})
		synctest.Wait()
		const name = "watchtide_origin_to_write_seconds"
		if got, took := counter(t, r.gateway, name), sum(t, r.gateway, name); got != 1 || took < 0 || took > 0.001 {
			t.Errorf("%v changes in %v s, want one in nearly 0 s", got, took)
		}
	})
}
