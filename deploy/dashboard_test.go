package deploy_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the dashboard")

const dashboardFile = "grafana/watchtide.json"

// panels are the panels of the dashboard, by row. ALL stands for the gateways that are chosen, and
// every histogram is shown as its median and its 99th percentile.
var panels = []struct {
	title  string
	panels []panel
}{
	{"What users feel", []panel{
		{"Subscribers", "short", []query{{`sum by (transport) (watchtide_subscribers{ALL})`, "{{transport}}"}}},
		{"From commit to write", "s", quantiles("watchtide_commit_to_write_seconds")},
		{"From the upstream to write, where it has times", "s", quantiles("watchtide_origin_to_write_seconds")},
		{"From commit to paint, as browsers report it", "s", quantiles("watchtide_browser_delivery_seconds")},
		{"Time to the first snapshot", "s", quantiles("watchtide_end_of_snapshot_seconds")},
	}},
	{"Watches", []panel{
		{"Out of sync", "s", []query{{`max by (watch) (watchtide_watch_out_of_sync_seconds{ALL})`, "{{watch}}"}}},
		{"Replicas that are connected", "short", []query{{`sum by (watch) (watchtide_upstream_connected{ALL})`, "{{watch}}"}}},
		{"Events from upstreams", "ops", []query{{`sum by (watch, type) (rate(watchtide_upstream_events_total{ALL}[$__rate_interval]))`, "{{watch}} {{type}}"}}},
		{"Lost upstreams and complete snapshots", "short", []query{
			{`sum by (watch, reason) (increase(watchtide_upstream_reconnects_total{ALL}[$__rate_interval]))`, "{{watch}} lost: {{reason}}"},
			{`sum by (watch, reason) (increase(watchtide_upstream_resyncs_total{ALL}[$__rate_interval]))`, "{{watch}} snapshot: {{reason}}"},
			{`sum by (watch) (increase(watchtide_digest_mismatches_total{ALL}[$__rate_interval]))`, "{{watch}} differs from the followed gateway"},
		}},
		{"Resources", "short", []query{{`max by (watch) (watchtide_watch_resources{ALL})`, "{{watch}}"}}},
		{"Memory of watches", "bytes", []query{
			{`max by (watch) (watchtide_watch_log_bytes{ALL})`, "{{watch}}"},
			{`sum(watchtide_views_bytes{ALL})`, "views"},
		}},
	}},
	{"Streams", []panel{
		{"Events sent", "ops", []query{{`sum by (type) (rate(watchtide_events_sent_total{ALL}[$__rate_interval]))`, "{{type}}"}}},
		{"Bytes sent", "Bps", []query{{`sum by (transport) (rate(watchtide_sent_bytes_total{ALL}[$__rate_interval]))`, "{{transport}}"}}},
		{"Streams that begin", "ops", []query{{`sum by (outcome) (rate(watchtide_resumes_total{ALL}[$__rate_interval]))`, "{{outcome}}"}}},
		{"Streams that the gateway ends", "ops", []query{
			{`sum by (reason) (rate(watchtide_goodbyes_total{ALL}[$__rate_interval]))`, "{{reason}}"},
			{`sum(rate(watchtide_write_timeouts_total{ALL}[$__rate_interval]))`, "not read"},
		}},
		{"Changes that slow clients skip", "ops", []query{{`sum by (transport) (rate(watchtide_conflated_changes_total{ALL}[$__rate_interval]))`, "{{transport}}"}}},
		{"Waiting for a snapshot", "short", []query{{`sum by (instance) (watchtide_snapshots_waiting{ALL})`, "{{instance}}"}}},
	}},
	{"Requests and refusals", []panel{
		{"Requests", "reqps", []query{{`sum by (route, code) (rate(watchtide_http_requests_total{ALL}[$__rate_interval]))`, "{{route}} {{code}}"}}},
		{"Refused", "ops", []query{
			{`sum by (reason) (rate(watchtide_refusals_total{ALL}[$__rate_interval]))`, "stream: {{reason}}"},
			{`sum by (budget) (rate(watchtide_budget_refusals_total{ALL}[$__rate_interval]))`, "budget: {{budget}}"},
			{`sum(rate(watchtide_requests_refused_total{ALL}[$__rate_interval]))`, "too many requests"},
			{`sum by (reason) (rate(watchtide_auth_failures_total{ALL}[$__rate_interval]))`, "credential: {{reason}}"},
		}},
	}},
	{"Processes", []panel{
		{"Processors", "short", []query{{`rate(process_cpu_seconds_total{ALL}[$__rate_interval])`, "{{instance}}"}}},
		{"Memory", "bytes", []query{
			{`process_resident_memory_bytes{ALL}`, "{{instance}}"},
			{`go_gc_gomemlimit_bytes{ALL} < 1e15`, "{{instance}}: limit"},
		}},
		{"Connections", "short", []query{{`watchtide_connections{ALL}`, "{{instance}}"}}},
		{"Certificates expire in", "s", []query{{`watchtide_certificate_expiry_timestamp_seconds{ALL} - time()`, "{{instance}} {{listener}}"}}},
		{"Versions", "short", []query{{`sum by (version) (watchtide_build_info{ALL})`, "{{version}}"}}},
		{"Configuration is the newest", "short", []query{{`watchtide_config_last_reload_successful{ALL}`, "{{instance}}"}}},
	}},
}

type panel struct {
	title, unit string
	queries     []query
}

type query struct{ expr, legend string }

func quantiles(histogram string) []query {
	of := func(q string) string {
		return `histogram_quantile(` + q + `, sum by (le) (rate(` + histogram + `_bucket{ALL}[$__rate_interval])))`
	}
	return []query{{of("0.5"), "median"}, {of("0.99"), "99 %"}}
}

// TestDashboard checks that the dashboard is the one of this file. With -update, it writes it.
func TestDashboard(t *testing.T) {
	want, err := json.MarshalIndent(dashboard(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(dashboardFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(dashboardFile); err != nil || string(got) != string(want) {
		t.Errorf("deploy/%s is stale (%v): run go test ./deploy -run TestDashboard -update", dashboardFile, err)
	}
}

// fields is an object of JSON.
type fields = map[string]any

func dashboard() fields {
	return fields{
		"title": "Watchtide", "uid": "watchtide", "tags": []string{"watchtide"}, "schemaVersion": 39, "editable": true,
		"refresh": "30s", "time": fields{"from": "now-1h", "to": "now"}, "timezone": "browser",
		"templating": fields{"list": []any{
			fields{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
			variable("job", `label_values(watchtide_build_info, job)`),
			variable("instance", `label_values(watchtide_build_info{job=~"$job"}, instance)`),
		}},
		"panels": allPanels(),
	}
}

// source is the Prometheus that the reader chooses.
var source = fields{"type": "prometheus", "uid": "${datasource}"}

func variable(name, query string) fields {
	return fields{
		"name": name, "type": "query", "datasource": source, "query": fields{"query": query, "refId": name},
		"refresh": 2, "sort": 1, "multi": true, "includeAll": true, "current": fields{"text": "All", "value": "$__all"},
	}
}

// allPanels lays the panels out, three in a line of 24 columns.
func allPanels() (out []fields) {
	const wide, high = 8, 8
	y := 0
	for _, row := range panels {
		out = append(out, fields{"id": len(out) + 1, "type": "row", "title": row.title, "collapsed": false, "gridPos": fields{"x": 0, "y": y, "w": 24, "h": 1}})
		y++
		for i, p := range row.panels {
			out = append(out, fields{
				"id": len(out) + 1, "type": "timeseries", "title": p.title, "datasource": source,
				"gridPos":     fields{"x": i % 3 * wide, "y": y + i/3*high, "w": wide, "h": high},
				"fieldConfig": fields{"defaults": fields{"unit": p.unit, "min": 0, "custom": fields{"fillOpacity": 10, "showPoints": "never"}}, "overrides": []any{}},
				"options":     fields{"legend": fields{"displayMode": "list", "placement": "bottom"}, "tooltip": fields{"mode": "multi", "sort": "desc"}},
				"targets":     targets(p.queries),
			})
		}
		y += (len(row.panels) + 2) / 3 * high
	}
	return out
}

func targets(queries []query) (out []fields) {
	for i, q := range queries {
		expr := strings.ReplaceAll(q.expr, "ALL", `job=~"$job", instance=~"$instance"`)
		out = append(out, fields{"refId": string(rune('A' + i)), "datasource": source, "expr": expr, "legendFormat": q.legend})
	}
	return out
}
