package metrics

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/stream/watch"
)

// delivery is the metric of what browsers report. At each scrape it loses the series of watches
// that the configuration does not have any more.
//
// All methods may be called from any goroutine.
type delivery struct {
	// Static after construction.
	registry *watch.Registry
	took     *prometheus.HistogramVec // watch

	mu     sync.Mutex
	series map[string]struct{} // guarded by mu: the names of those that took has
}

func newDelivery(reg *watch.Registry) *delivery {
	return &delivery{
		registry: reg,
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    Namespace + "browser_delivery_seconds",
			Help:    "Time from the commit of a change until a browser has painted it, as browsers report it with POST /v1/delivery: a sample, which clients can falsify.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"watch"}),
		series: map[string]struct{}{},
	}
}

// Describe implements prometheus.Collector.
func (d *delivery) Describe(out chan<- *prometheus.Desc) { d.took.Describe(out) }

// Collect implements prometheus.Collector.
func (d *delivery) Collect(out chan<- prometheus.Metric) {
	d.sweep()
	d.took.Collect(out)
}

// sweep removes the series of watches and templates that are not declared.
func (d *delivery) sweep() {
	declared := map[string]bool{}
	for _, w := range d.registry.Watches() {
		declared[w.Name()] = w.Template() == nil
	}
	for _, t := range d.registry.Templates() {
		declared[t.Name()] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.series, func(name string, _ struct{}) bool {
		return !declared[name] && d.took.DeleteLabelValues(name)
	})
}

func (d *delivery) observe(name string, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.series[name] = struct{}{}
	d.took.WithLabelValues(name).Observe(took.Seconds())
}

// Delivered observes how long a change took to be painted. watch is the name of a watch of the
// configuration, or of a template.
func (m *Metrics) Delivered(watch string, took time.Duration) { m.delivery.observe(watch, took) }
