package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/internal/cluster"
)

// clusterCollector reads the figures of what a cluster is asked at each scrape.
type clusterCollector struct {
	now func() map[string]cluster.Stats
}

var (
	descReviews       = desc("cluster_reviews_total", "Questions to the API server of auth.kubernetes, by kind (token: whose it is; access: what somebody may list or watch) and result: allowed and refused are answers; failed: there was none; crowded: not asked, since too many others waited; cached: not asked, since the answer no was known.", "kind", "result")
	descReviewsAsked  = desc("cluster_reviews_in_flight", "Questions to the API server of auth.kubernetes that have no answer yet, by kind.", "kind")
	descReviewsCached = desc("cluster_answers", "Answers of the API server of auth.kubernetes that are remembered, by kind.", "kind")
)

// Describe implements prometheus.Collector.
func (c clusterCollector) Describe(out chan<- *prometheus.Desc) {
	describe(out, descReviews, descReviewsAsked, descReviewsCached)
}

// Collect implements prometheus.Collector.
func (c clusterCollector) Collect(out chan<- prometheus.Metric) {
	if c.now == nil {
		return
	}
	for kind, s := range c.now() {
		for result, n := range s.Results {
			counter(out, descReviews, n, kind, string(result))
		}
		gauge(out, descReviewsAsked, float64(s.AtOnce), kind)
		gauge(out, descReviewsCached, float64(s.Cached), kind)
	}
}

// WatchCluster exports what a cluster is asked, by kind. now returns the figures of now; nil: no cluster
// is asked.
func (m *Metrics) WatchCluster(now func() map[string]cluster.Stats) {
	m.Registry.MustRegister(clusterCollector{now})
}
