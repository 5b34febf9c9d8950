package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// watchCollector reads the watches' own figures at each scrape: they cost nothing in
// between, and a removed watch is gone from the answer. The watches of a template are
// added up under its name, since their own names come from clients.
type watchCollector struct{ registry *watch.Registry }

var (
	descState       = watchDesc("watch_state", "1 for the state that the watch is in, 0 for the others. For a template, how many of its watches are in the state.", "state")
	descRevision    = watchDesc("watch_revision", "Newest committed revision of the upstream.")
	descResources   = watchDesc("watch_resources", "Resources in the watch.")
	descBytes       = watchDesc("watch_log_bytes", "Bytes that the log of the watch holds.")
	descStaged      = watchDesc("watch_staged_bytes", "Bytes received from the upstream and not committed yet.")
	descSuperseded  = watchDesc("watch_superseded_bytes", "Bytes of superseded data in memory: not compacted yet, or still read by slow subscribers and listings.")
	descKept        = watchDesc("watch_commit_times_bytes", "Bytes of the times of commits, which are kept while browsers report when they have painted changes.")
	descFull        = watchDesc("watch_over_memory", "1 for a watch that does not fit into its memory ceiling, and therefore shows an older state or none. For a template, how many of its watches.")
	descTombstones  = watchDesc("watch_tombstones", "Deletes that are remembered so that subscribers can resume.")
	descHorizon     = watchDesc("watch_horizon_age_seconds", "Age of the oldest position from which a subscriber can resume; at least that, if the upstream knew what was deleted before the start.")
	descSubscribers = watchDesc("watch_subscribers", "Subscriptions of the watch, over all transports.")
	descReconnects  = watchDesc("upstream_reconnects_total", "Connections to the upstream that were lost.", "reason")
	descResyncs     = watchDesc("upstream_resyncs_total", "Complete snapshots that were loaded from the upstream.", "reason")
	descEvents      = watchDesc("upstream_events_total", "Events received from the upstream.", "type")
	descMismatches  = watchDesc("digest_mismatches_total", "States of the watch that had another digest than that of the gateway that it follows.")
	descOpen        = watchDesc("template_watches", "Open watches of a template.")
	descConnected   = watchDesc("upstream_connected", "1 if there is a connection to the upstream that has caught up, else 0; none for a watch that nobody has asked for. For a template, how many of its watches have one.")
	descLoading     = watchDesc("watch_loading_resources", "Resources received by a connection to the upstream that has not caught up; none otherwise.")
	descExpected    = watchDesc("watch_loading_expected_resources", "About how many resources that connection will have received when it has; none where the upstream does not tell.")
	descRetained    = watchDesc("upstream_retained_bytes", "Bytes that the upstream keeps until the gateway has confirmed them, as the WAL of a replication slot of PostgreSQL; none where that is not known. The watches of a source have the same. For a template, that of the watch with the most.")
	descOutOfSync   = watchDesc("watch_out_of_sync_seconds", "Time since the watch was last in sync, or since the first attempt to prime it; 0 while it is in sync, none for a watch that nobody has asked for. For a template, that of the watch with the longest.")
)

func watchDesc(name, help string, labels ...string) *prometheus.Desc {
	return desc(name, help, append([]string{"watch"}, labels...)...)
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(Namespace+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c watchCollector) Describe(out chan<- *prometheus.Desc) {
	describe(out, descState, descRevision, descResources, descBytes, descStaged, descSuperseded, descKept, descFull, descTombstones,
		descHorizon, descSubscribers, descReconnects, descResyncs, descEvents, descMismatches, descOpen, descConnected, descLoading, descExpected, descRetained, descOutOfSync)
}

func describe(out chan<- *prometheus.Desc, all ...*prometheus.Desc) {
	for _, d := range all {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c watchCollector) Collect(out chan<- prometheus.Metric) {
	for _, t := range c.registry.Templates() {
		collectTemplate(out, t)
	}
	for _, w := range c.registry.Watches() {
		if w.Template() != nil {
			continue
		}
		collectSnapshot(out, w.Name(), w.Snapshot())
		gauge(out, descSubscribers, float64(w.Subscribers()), w.Name())
		gauge(out, descStaged, float64(w.Memory().Staged()), w.Name())
		gauge(out, descSuperseded, float64(w.Memory().Superseded()), w.Name())
		gauge(out, descKept, float64(w.Memory().Kept()), w.Name())
		gauge(out, descFull, number(w.Full() != nil), w.Name())
		collectLoading(out, w)
		if bytes, ok := w.RetainedBytes(); ok {
			gauge(out, descRetained, float64(bytes), w.Name())
		}
		collectStats(out, w.Name(), w.Stats())
		if up := w.Upstream(); !up.Since.IsZero() {
			gauge(out, descConnected, number(up.Connected), w.Name())
			gauge(out, descOutOfSync, outOfSync(w.Status(), up).Seconds(), w.Name())
		}
	}
}

func collectLoading(out chan<- prometheus.Metric, w *watch.Watch) {
	received, expected, ok := w.Loading()
	if !ok {
		return
	}
	gauge(out, descLoading, float64(received), w.Name())
	if expected > 0 {
		gauge(out, descExpected, float64(expected), w.Name())
	}
}

// outOfSync returns for how long a watch has not been in sync. The time before the first
// attempt to reach the upstream does not count.
func outOfSync(s stream.Status, up watch.Upstream) time.Duration {
	switch s.State {
	case stream.InSync:
		return 0
	case stream.Priming:
		return time.Since(latest(s.Since, up.Since))
	default:
		return time.Since(s.Since)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func collectStats(out chan<- prometheus.Metric, name string, s watch.Stats) {
	counters(out, descReconnects, name, s.Reconnects)
	counters(out, descResyncs, name, s.Resyncs)
	counters(out, descEvents, name, s.Events)
	counter(out, descMismatches, s.DigestMismatches, name)
}

func collectSnapshot(out chan<- prometheus.Metric, watch string, v log.Snapshot) {
	now := v.Status().State
	for s := stream.Priming; s <= stream.Stale; s++ {
		gauge(out, descState, number(s == now), watch, s.String())
	}
	gauge(out, descRevision, float64(v.Revision()), watch)
	gauge(out, descResources, float64(v.Count()), watch)
	gauge(out, descBytes, float64(v.Bytes()), watch)
	gauge(out, descTombstones, float64(v.Tombstones()), watch)
	if _, since := v.Horizon(); v.Primed() && !since.IsZero() {
		gauge(out, descHorizon, time.Since(since).Seconds(), watch)
	}
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func counter(out chan<- prometheus.Metric, d *prometheus.Desc, n uint64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func counters(out chan<- prometheus.Metric, d *prometheus.Desc, watch string, by map[string]uint64) {
	for label, n := range by {
		counter(out, d, n, watch, label)
	}
}
