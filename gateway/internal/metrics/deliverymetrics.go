package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// makeDelivery makes the metric of what browsers report.
func (m *Metrics) makeDelivery() {
	m.delivery = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    Namespace + "browser_delivery_seconds",
		Help:    "Time from the commit of a change until a browser has painted it, as browsers report it with POST /v1/delivery: a sample, which clients can falsify.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"watch"})
	m.Registry.MustRegister(m.delivery)
}

// Delivered observes how long a change took to be painted. watch is the name of a watch of the
// configuration, or of a template.
func (m *Metrics) Delivered(watch string, took time.Duration) {
	m.delivery.WithLabelValues(watch).Observe(took.Seconds())
}
