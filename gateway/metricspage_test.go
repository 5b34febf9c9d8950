package gateway

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
)

const metricsPage = "../docs/metrics.md"

// TestMetricsPage checks that docs/metrics.md has all metrics of the gateway, as they are. With
// -update, it writes the page.
func TestMetricsPage(t *testing.T) {
	traces, _ := recordSpans()
	traces.Spans = func() SpanCounts { return SpanCounts{} }
	r := newAPIRig(t, Config{Tracing: traces})
	r.gateway.metrics.Delivered("notes", 0) // or it has no type
	all := described(t, r.gateway)
	if len(all) < 60 {
		t.Fatalf("only %d metrics are described", len(all))
	}
	want := pageOf(all)
	if *update {
		if err := os.WriteFile(metricsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(metricsPage)
	if err != nil || string(got) != want {
		t.Errorf("docs/metrics.md is stale (%v): run go test ./gateway -run TestMetricsPage -update", err)
	}
}

// descriptor is what the page says of a metric.
type descriptor struct{ name, kind, unit, help, labels string }

var descriptorText = regexp.MustCompile(`^Desc\{fqName: "(\w+)", help: "(.*)", unit: ".*", constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

// described returns what the gateway's registry describes, sorted by name. A descriptor has no
// type, but names follow the conventions: see TestMetricsFollowConventions.
func described(t *testing.T, g *Gateway) (out []descriptor) {
	t.Helper()
	kinds := map[string]string{}
	for _, f := range gather(t, g) {
		kinds[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	descriptors := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptors)
		g.metrics.Registry.Describe(descriptors)
	}()
	for d := range descriptors {
		found := descriptorText.FindStringSubmatch(d.String())
		if found == nil || !strings.HasPrefix(found[1], metrics.Namespace) {
			continue // of the process
		}
		kind := "gauge"
		if strings.HasSuffix(found[1], "_total") {
			kind = "counter"
		}
		out = append(out, descriptor{found[1], cmp.Or(kinds[found[1]], kind), unitOf(found[1]), found[2], found[3]})
	}
	slices.SortFunc(out, func(a, b descriptor) int { return cmp.Compare(a.name, b.name) })
	return out
}

// unitOf returns the unit that the name of a metric ends with.
func unitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for _, unit := range []string{"seconds", "bytes"} {
		if strings.HasSuffix(name, "_"+unit) || strings.Contains(name, "_"+unit+"_") {
			return unit
		}
	}
	return ""
}

func pageOf(all []descriptor) string {
	var out strings.Builder
	out.WriteString(`<!-- Written by go test ./gateway -run TestMetricsPage -update. Do not edit. -->
# Metrics

All metrics of the gateway, at ` + "`/metrics`" + ` for [operators](configuration.md#operations). What to watch and what to do is in
[monitoring.md](monitoring.md). There are also the usual metrics of Go programs (` + "`go_`" + `) and of processes (` + "`process_`" + `).

No label has a value that a client chooses, and none is ` + "`instance`" + `: Prometheus adds that one. The label ` + "`watch`" + ` is the name of a
watch of the configuration, or of a template, whose watches are added up.

| Metric | Type | Unit | Labels | Meaning |
| --- | --- | --- | --- | --- |
`)
	for _, d := range all {
		var labels []string
		for _, label := range strings.FieldsFunc(d.labels, func(r rune) bool { return r == ',' }) {
			labels = append(labels, "`"+label+"`")
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", d.name, d.kind, d.unit, strings.Join(labels, ", "), d.help)
	}
	return out.String()
}
