package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// makeSnapshots makes the metrics of the snapshot budget.
func (m *Metrics) makeSnapshots() {
	m.snapshotWait = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    Namespace + "snapshot_wait_seconds",
		Help:    "Time that snapshots and long catch-ups waited for their turn, including those that did not have to wait.",
		Buckets: []float64{.001, .01, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
	})
	m.snapshotBytes = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: Namespace + "snapshot_bytes_in_flight",
		Help: "Bytes of snapshots and long catch-ups on their way, as counted by the snapshot budget.",
	})
	m.snapshotWaiting = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: Namespace + "snapshots_waiting",
		Help: "Streams that are waiting for their turn to be sent a snapshot or a long catch-up.",
	})
	m.Registry.MustRegister(m.snapshotWait, m.snapshotBytes, m.snapshotWaiting)
}

// WaitedForSnapshot observes how long a stream waited for its turn.
func (m *Metrics) WaitedForSnapshot(d time.Duration) { m.snapshotWait.Observe(d.Seconds()) }

// SnapshotsNow records how much of the budget is taken, and how many wait for it.
func (m *Metrics) SnapshotsNow(taken int64, waiting int) {
	m.snapshotBytes.Set(float64(taken))
	m.snapshotWaiting.Set(float64(waiting))
}
