package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/stream"
)

// storeCollector reads what durable stores say about their disks at each scrape.
type storeCollector struct {
	now func() map[string]stream.DiskStats
}

var (
	descStoreFile    = desc("store_file_bytes", "Size of the file of a durable store.", "source")
	descStoreFree    = desc("store_free_bytes", "Bytes of the file of a durable store that are free. A start gives them back, if they are more than half.", "source")
	descStoreCommits = desc("store_commits_total", "Transactions of the file of a durable store. Writes that arrive together share one.", "source")
	descStoreSeconds = desc("store_commit_seconds_total", "Time that the transactions of the file of a durable store have taken, most of it waiting for the disk.", "source")
	descStoreFailed  = desc("store_failed", "1 for a durable store that takes no writes until a restart, since a write to its disk has failed; 0 for one that does.", "source")
)

// Describe implements prometheus.Collector.
func (c storeCollector) Describe(out chan<- *prometheus.Desc) {
	describe(out, descStoreFile, descStoreFree, descStoreCommits, descStoreSeconds, descStoreFailed)
}

// Collect implements prometheus.Collector.
func (c storeCollector) Collect(out chan<- prometheus.Metric) {
	if c.now == nil {
		return
	}
	for source, d := range c.now() {
		failed := 0.0
		if d.Failed {
			failed = 1
		}
		gauge(out, descStoreFile, float64(d.FileBytes), source)
		gauge(out, descStoreFree, float64(d.FreeBytes), source)
		counter(out, descStoreCommits, d.Commits, source)
		out <- prometheus.MustNewConstMetric(descStoreSeconds, prometheus.CounterValue, d.Waited.Seconds(), source)
		gauge(out, descStoreFailed, failed, source)
	}
}

// WatchStores exports the disks of durable stores, by the name of their source. now returns how they
// are now; nil: there are none.
func (m *Metrics) WatchStores(now func() map[string]stream.DiskStats) {
	m.Registry.MustRegister(storeCollector{now})
}
