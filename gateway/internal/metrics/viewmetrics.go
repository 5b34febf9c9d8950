package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/stream/views"
)

// viewCollector reads the figures of views at each scrape. They have no label with the
// name of a view: clients make them.
type viewCollector struct{ stats func() views.Stats }

var (
	descViews       = viewDesc("views", "Views that clients have asked for, those without subscribers included.")
	descIdleViews   = viewDesc("views_idle", "Views without subscribers, which are kept for a while.")
	descViewBytes   = viewDesc("views_bytes", "Bytes that views hold.")
	descViewBuilds  = viewDesc("view_builds_total", "Views made from all of their watch.")
	descEvaluations = viewDesc("view_evaluations_total", "Decisions whether a view has a resource.")
	descFound       = viewDesc("view_index_hits_total", "Decisions that the index of views asked for.")
	descFailures    = viewDesc("view_failures_total", "Decisions without a result, so that the view has not the resource.", "reason")
)

func viewDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(Namespace+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c viewCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descViews, descIdleViews, descViewBytes, descViewBuilds, descEvaluations, descFound, descFailures} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c viewCollector) Collect(out chan<- prometheus.Metric) {
	s := c.stats()
	gauge(out, descViews, float64(s.Views))
	gauge(out, descIdleViews, float64(s.Idle))
	gauge(out, descViewBytes, float64(s.Bytes))
	for d, n := range map[*prometheus.Desc]uint64{descViewBuilds: s.Builds, descEvaluations: s.Evaluations, descFound: s.Found} {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	for reason, n := range s.Failures {
		out <- prometheus.MustNewConstMetric(descFailures, prometheus.CounterValue, float64(n), reason)
	}
}

// WatchViews adds the figures of views.
func (m *Metrics) WatchViews(stats func() views.Stats) { m.Registry.MustRegister(viewCollector{stats}) }
