package deploy_test

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// flapping is an upstream that is lost after its snapshot, and comes back with a change. It keeps what was not
// confirmed.
type flapping struct{}

func (flapping) RetainedBytes() (int64, bool) { return 0, true }

func (flapping) Watch(_ context.Context, resume stream.Resume, sink stream.Sink) error {
	if resume.Epoch == "" {
		return errors.Join(sink.Reset("e"), sink.Upsert(stream.Resource{Key: "k", Revision: 1, Value: []byte("1")}), sink.Commit(1), stream.ErrStalled)
	}
	sink.SetTimestamp(time.Now())
	revision := resume.Revision + 1
	return errors.Join(sink.Upsert(stream.Resource{Key: "k", Revision: revision, Value: []byte("2")}), sink.Commit(revision), sink.Status(stream.InSync, ""), stream.ErrStalled)
}

// liveMetrics returns what a running gateway serves to Prometheus after some traffic.
func liveMetrics(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	registry := watch.NewRegistry()
	defer registry.Close()
	quick := watch.Backoff{Min: 10 * time.Millisecond, Max: 20 * time.Millisecond}
	if _, err := registry.Add(watch.Config{Name: "w", Source: flapping{}, Backoff: quick}); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{
		Registry: registry, Metrics: true, HTTPSettings: gateway.HTTPSettings{DeliveryReports: true}, StreamSettings: gateway.StreamSettings{DrainDelay: -1, Drain: -1}, Logger: slog.New(slog.DiscardHandler),
		Certificates: map[string]*x509.Certificate{"http": {NotAfter: time.Now().Add(time.Hour)}},
		Journal:      func() watch.JournalStats { return watch.JournalStats{} },
		Stores:       func() map[string]stream.DiskStats { return map[string]stream.DiskStats{"local": {Path: "notes.db"}} },
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := realserver.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, gateway.Listeners{HTTP: l}) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	defer http.DefaultClient.CloseIdleConnections()
	url := "http://" + l.Addr().String()
	reportPaint(t, url, "1")                                   // from now on, commits are remembered
	readUntil(t, url+"/v1/events?watch=w", "event: upsert", 3) // at most the first is in the snapshot
	readUntil(t, url+"/v1/events?watch=w&until=end_of_snapshot", "event: goodbye", 1)
	answer, err := http.Get(url + "/v1/watches/w/resources/k")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	reportPaint(t, url, strings.Trim(answer.Header.Get("ETag"), `"`))
	return scrape(t, url+"/metrics")
}

// reportPaint reports that a browser has painted a revision.
func reportPaint(t *testing.T, url, revision string) {
	t.Helper()
	answer, err := http.Post(url+"/v1/delivery", "application/json", strings.NewReader(`{"painted":[{"watch":"w","revision":"`+revision+`","ago_ms":0}]}`))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		t.Fatal(answer.Status)
	}
}

// readUntil reads until so many lines have been a text.
func readUntil(t *testing.T, url, text string, times int) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if lines.Text() == text {
			times--
		}
		if times == 0 {
			return
		}
	}
	t.Fatalf("%s ended without %s: %v", url, text, lines.Err())
}

func scrape(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(answer.Body, 10<<20))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// expressions are those of the dashboard and of the rules, by where they are.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, row := range panels {
		for _, p := range row.panels {
			for _, q := range p.queries {
				out["panel "+p.title+", "+q.legend] = strings.ReplaceAll(q.expr, "ALL", `job=~"$job"`)
			}
		}
	}
	for _, group := range readRules(t).Groups {
		for _, r := range group.Rules {
			out["rule "+r.Alert+r.Record] = r.Expr
		}
	}
	return out
}

type rules struct {
	Groups []struct {
		Rules []struct{ Record, Alert, Expr string }
	}
}

func readRules(t *testing.T) (out rules) {
	t.Helper()
	text, err := os.ReadFile("prometheus/rules.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	metricName = regexp.MustCompile(`(?:^|[^:\w])((?:watchtide|go|process)_\w+)`)
	matchers   = regexp.MustCompile(`\{([^}]*)\}`)
	matched    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouped    = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
	ofBuckets  = regexp.MustCompile(`_bucket$`)
)

// TestMetricsOfPanelsAndRulesExist checks every metric, and every label of it, that a panel or a
// rule names against a running gateway.
func TestMetricsOfPanelsAndRulesExist(t *testing.T) {
	families, all := liveMetrics(t), expressions(t)
	if len(all) < 40 {
		t.Fatalf("only %d expressions", len(all))
	}
	for where, expr := range all {
		labels := map[string]bool{"job": true, "instance": true, "le": true}
		names := metricName.FindAllStringSubmatch(expr, -1)
		if len(names) == 0 && !strings.Contains(expr, "job:watchtide_") {
			t.Errorf("%s names no metric: %s", where, expr)
		}
		for _, name := range names {
			f := families[ofBuckets.ReplaceAllString(name[1], "")]
			if f == nil || len(f.GetMetric()) == 0 {
				t.Errorf("%s: the gateway has no %s", where, name[1])
				continue
			}
			for _, l := range f.GetMetric()[0].GetLabel() {
				labels[l.GetName()] = true
			}
		}
		if len(names) == 0 {
			continue // of recorded series
		}
		for _, label := range labelsOf(expr) {
			if !labels[label] {
				t.Errorf("%s: the metrics have no label %s, but %v", where, label, slices.Sorted(maps.Keys(labels)))
			}
		}
	}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "instance" || l.GetName() == "job" {
					t.Errorf("%s has a label of Prometheus: %v", name, l)
				}
			}
		}
	}
}

// labelsOf returns the labels that an expression selects and groups by.
func labelsOf(expr string) (out []string) {
	for _, m := range matchers.FindAllStringSubmatch(expr, -1) {
		for _, l := range matched.FindAllStringSubmatch(m[1], -1) {
			out = append(out, l[1])
		}
	}
	for _, g := range grouped.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(g[1], ",") {
			out = append(out, strings.TrimSpace(label))
		}
	}
	return out
}

// TestRecordedSeriesExist checks that what alerts use of recorded series is recorded.
func TestRecordedSeriesExist(t *testing.T) {
	recorded := map[string]bool{}
	for _, group := range readRules(t).Groups {
		for _, r := range group.Rules {
			recorded[r.Record] = true
		}
	}
	used := regexp.MustCompile(`\bjob:\w+:\w+`)
	for where, expr := range expressions(t) {
		for _, name := range used.FindAllString(expr, -1) {
			if !recorded[name] {
				t.Errorf("%s: nothing records %s", where, name)
			}
		}
	}
}

// TestEveryAlertIsTestedAndExplained checks that each alert fires in one test and stays quiet in
// another, and has a heading in docs/monitoring.md.
func TestEveryAlertIsTestedAndExplained(t *testing.T) {
	var file struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string
				ExpAlerts []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	text, err := os.ReadFile("prometheus/rules_test.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	page, pageErr := os.ReadFile("../docs/monitoring.md")
	if err := errors.Join(err, pageErr); err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, a := range test.AlertRuleTest {
			fires[a.Alertname] = fires[a.Alertname] || len(a.ExpAlerts) > 0
			quiet[a.Alertname] = quiet[a.Alertname] || len(a.ExpAlerts) == 0
		}
	}
	for _, group := range readRules(t).Groups {
		for _, r := range group.Rules {
			if r.Alert == "" {
				continue
			}
			if !fires[r.Alert] || !quiet[r.Alert] {
				t.Errorf("%s: a test in which it fires: %t, one in which it does not: %t", r.Alert, fires[r.Alert], quiet[r.Alert])
			}
			if !strings.Contains(string(page), "\n### "+r.Alert+"\n") {
				t.Errorf("docs/monitoring.md does not explain %s", r.Alert)
			}
			delete(fires, r.Alert)
		}
	}
	for name := range fires {
		t.Errorf("there is no alert %s", name)
	}
}
