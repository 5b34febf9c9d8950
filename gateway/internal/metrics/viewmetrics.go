package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/internal/views"
)

// viewCollector reads the figures of views at each scrape. They have no label with the
// name of a view: clients make them.
type viewCollector struct{ stats func() views.Stats }

var (
	descViews       = desc("views", "Views that clients have asked for, those without subscribers included.")
	descIdleViews   = desc("views_idle", "Views without subscribers, which are kept for a while.")
	descViewBytes   = desc("views_bytes", "Bytes that views hold.")
	descViewBuilds  = desc("view_builds_total", "Views made from all of their watch.")
	descEvaluations = desc("view_evaluations_total", "Decisions whether a view has a resource.")
	descFound       = desc("view_index_hits_total", "Decisions that the index of views asked for.")
	descFailures    = desc("view_failures_total", "Decisions without a result, so that the view has not the resource.", "reason")
)

// Describe implements prometheus.Collector.
func (c viewCollector) Describe(out chan<- *prometheus.Desc) {
	describe(out, descViews, descIdleViews, descViewBytes, descViewBuilds, descEvaluations, descFound, descFailures)
}

// Collect implements prometheus.Collector.
func (c viewCollector) Collect(out chan<- prometheus.Metric) {
	s := c.stats()
	gauge(out, descViews, float64(s.Views))
	gauge(out, descIdleViews, float64(s.Idle))
	gauge(out, descViewBytes, float64(s.Bytes))
	counter(out, descViewBuilds, s.Builds)
	counter(out, descEvaluations, s.Evaluations)
	counter(out, descFound, s.Found)
	for reason, n := range s.Failures {
		counter(out, descFailures, n, reason)
	}
}

// WatchViews adds the figures of views.
func (m *Metrics) WatchViews(stats func() views.Stats) { m.Registry.MustRegister(viewCollector{stats}) }
