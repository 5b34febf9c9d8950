package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// collectTemplate adds up the figures of the open watches of a template. There is no
// revision: those of different watches have nothing in common.
func collectTemplate(out chan<- prometheus.Metric, t *watch.Template) {
	var states [stream.Stale + 1]int
	var resources, bytes, tombstones, subscribers, staged, superseded, kept, full, connected float64
	var oldest, unsynced time.Duration
	retained := int64(-1)
	watches := t.Watches()
	for _, w := range watches {
		v := w.Snapshot()
		states[v.Status().State]++
		resources += float64(v.Count())
		bytes += float64(v.Bytes())
		tombstones += float64(v.Tombstones())
		subscribers += float64(w.Subscribers())
		staged += float64(w.Memory().Staged())
		superseded += float64(w.Memory().Superseded())
		kept += float64(w.Memory().Kept())
		full += number(w.Full() != nil)
		if up := w.Upstream(); !up.Since.IsZero() {
			connected += number(up.Connected)
			unsynced = max(unsynced, outOfSync(v.Status(), up))
		}
		if bytes, ok := w.RetainedBytes(); ok {
			retained = max(retained, bytes)
		}
		if _, since := v.Horizon(); v.Primed() && !since.IsZero() {
			oldest = max(oldest, time.Since(since))
		}
	}
	for s := stream.Priming; s <= stream.Stale; s++ {
		gauge(out, descState, float64(states[s]), t.Name(), s.String())
	}
	gauge(out, descOpen, float64(len(watches)), t.Name())
	gauge(out, descResources, resources, t.Name())
	gauge(out, descBytes, bytes, t.Name())
	gauge(out, descTombstones, tombstones, t.Name())
	gauge(out, descSubscribers, subscribers, t.Name())
	gauge(out, descStaged, staged, t.Name())
	gauge(out, descSuperseded, superseded, t.Name())
	gauge(out, descKept, kept, t.Name())
	gauge(out, descFull, full, t.Name())
	gauge(out, descConnected, connected, t.Name())
	gauge(out, descOutOfSync, unsynced.Seconds(), t.Name())
	if retained >= 0 {
		gauge(out, descRetained, float64(retained), t.Name())
	}
	if oldest > 0 {
		gauge(out, descHorizon, oldest.Seconds(), t.Name())
	}
	collectStats(out, t.Name(), t.Stats())
}
