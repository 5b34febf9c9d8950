package metrics

import "github.com/prometheus/client_golang/prometheus"

// WatchSpans exports what became of the spans of traces, read at each scrape.
func (m *Metrics) WatchSpans(read func() (exported, failed, dropped uint64)) {
	m.Registry.MustRegister(spanCollector(read))
}

// spanCollector reads the counts of spans.
type spanCollector func() (exported, failed, dropped uint64)

var descSpans = desc("spans_total", "Spans of traces, by what became of them: exported, failed (the collector could not be reached, or did not take them), dropped (too many were waiting for it).", "outcome")

// Describe implements prometheus.Collector.
func (c spanCollector) Describe(out chan<- *prometheus.Desc) { out <- descSpans }

// Collect implements prometheus.Collector.
func (c spanCollector) Collect(out chan<- prometheus.Metric) {
	exported, failed, dropped := c()
	for outcome, n := range map[string]uint64{"exported": exported, "failed": failed, "dropped": dropped} {
		out <- prometheus.MustNewConstMetric(descSpans, prometheus.CounterValue, float64(n), outcome)
	}
}
