package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// The values of the label transport for events that are sent in no stream of HTTP. The others are the
// names of formats.
const (
	Poll = "poll" // GET /v1/watches/{watch}/changes
	GRPC = "grpc"
)

var transports = [...]string{frame.SSE.String(), frame.NDJSON.String(), Poll, GRPC}

// Metrics are the metrics of a gateway, in a registry of their own. Figures that
// the watches themselves know (state, revision, …) are not counted here:
// watchCollector reads them from the watches at each scrape.
//
// All methods may be called from any goroutine. The counters of each transport are
// created at construction, so that no method takes a lock or hashes labels, except
// Resumed, which is called once per stream and watch, and Answered, once per request.
type Metrics struct {
	// Static after construction.
	Registry  *prometheus.Registry
	Transport map[string]*transportMetrics
	lists     map[limits.Reason]prometheus.Counter // refusals of lists, and of moves of windows

	Resumes   *prometheus.CounterVec // transport, outcome
	snapshots prometheus.Histogram
	latency   prometheus.Histogram
	origin    prometheus.Histogram
	delivery  *delivery

	snapshotWait    prometheus.Histogram
	snapshotBytes   prometheus.Gauge
	snapshotWaiting prometheus.Gauge

	bodiesRefused  prometheus.Counter
	answersRefused prometheus.Counter

	reloads reloadMetrics
	access  accessMetrics

	requests *prometheus.CounterVec // route, method, code

	raw    prometheus.Counter // bytes of compressed streams, before compression
	zipped prometheus.Counter // and after
}

// transportMetrics are the counters of one transport.
type transportMetrics struct {
	Subscribers   prometheus.Gauge
	Events        [stream.Goodbye + 1]prometheus.Counter // by stream.EventType
	Bytes         prometheus.Counter
	Snapshots     prometheus.Counter
	Conflated     prometheus.Counter
	WriteTimeouts prometheus.Counter
	Goodbyes      map[stream.GoodbyeReason]prometheus.Counter
	refusals      map[limits.Reason]prometheus.Counter
}

// New makes the metrics of a gateway of a version, built from a commit, that serves the watches of reg.
func New(reg *watch.Registry, version, commit string) *Metrics {
	m := &Metrics{
		Registry:  prometheus.NewRegistry(),
		Transport: make(map[string]*transportMetrics, len(transports)),
		Resumes: counterVec("resumes_total",
			"Streams by how they began: exact (continued from the given position), digest (verified what it has by digest), or the reason why a full snapshot was sent.",
			"transport", "outcome"),
		snapshots: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    Namespace + "end_of_snapshot_seconds",
			Help:    "Time from the start of a stream to its end_of_snapshot.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    Namespace + "commit_to_write_seconds",
			Help:    "Time from the commit of a change until it is written to a subscriber that keeps up. Of subscribers that are sent the same bytes, one in 64 is measured.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5},
		}),
	}
	m.origin = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    Namespace + "origin_to_write_seconds",
		Help:    "Time from when the upstream made a change, by its own clock, until it is written to a subscriber that keeps up, measured as watchtide_commit_to_write_seconds is. Only for changes that have such a time: those of NATS and of files.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
	})
	m.raw = prometheus.NewCounter(prometheus.CounterOpts{
		Name: Namespace + "compression_input_bytes_total", Help: "Bytes of events and lists that were sent compressed, before compression.",
	})
	m.zipped = prometheus.NewCounter(prometheus.CounterOpts{
		Name: Namespace + "compression_output_bytes_total", Help: "Bytes of compressed streams and lists that were sent, before TLS and HTTP framing.",
	})
	m.delivery = newDelivery(reg)
	m.makeTransports()
	m.makeSnapshots()
	m.makeReloads()
	m.makeAccess()
	m.makeRequests()
	m.makeBuild(version, commit)
	m.Registry.MustRegister(m.Resumes, m.snapshots, m.latency, m.origin, m.delivery, m.raw, m.zipped,
		watchCollector{reg},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// WatchConnections exports the number of connections.
func (m *Metrics) WatchConnections(c *netconn.Connections) {
	m.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: Namespace + "connections", Help: "Open connections of clients, over all listeners.",
	}, func() float64 { return float64(c.Count()) }))
}

// WatchAdmission exports the number of clients.
func (m *Metrics) WatchAdmission(a *limits.Controller) {
	m.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: Namespace + "clients", Help: "Distinct client addresses with an open stream.",
	}, func() float64 { return float64(a.ClientCount()) }))
}

// Namespace begins the name of every metric.
const Namespace = "watchtide_"

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: Namespace + name, Help: help}, labels)
}

func (m *Metrics) makeTransports() {
	subscribers := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: Namespace + "subscribers", Help: "Open streams.",
	}, []string{"transport"})
	events := counterVec("events_sent_total", "Events sent to subscribers.", "transport", "type")
	bytes := counterVec("sent_bytes_total", "Bytes of events sent to subscribers, after compression if there is any, before TLS and HTTP framing.", "transport")
	snapshots := counterVec("snapshots_sent_total", "Complete snapshots sent to subscribers.", "transport")
	conflated := counterVec("conflated_changes_total", "Changes that slow subscribers did not see one by one.", "transport")
	timeouts := counterVec("write_timeouts_total", "Streams that were ended because the client stopped reading.", "transport")
	goodbyes := counterVec("goodbyes_total", "Streams that the gateway ended on purpose, or refused because of overload.", "transport", "reason")
	refusals := counterVec("refusals_total",
		"Streams that were not let in, by why: draining, subscribers (too many in all), watch (too many of one), client (too many of one address), principal (too many of one principal), memory (the watch is over its ceiling), connections (too many connections in all), template (too many watches of one template), client_template (too many of them for one client), rights (a cluster has not said what the client may read), views (too many views in all), client_views (too many of one address), client_orders (too many orders of one address), view_memory (the views are over their memory). The transport list stands for lists, and for moves of windows, of a view that was not opened.",
		"transport", "reason")
	m.Registry.MustRegister(subscribers, events, bytes, snapshots, conflated, timeouts, goodbyes, refusals)
	for _, name := range transports {
		t := &transportMetrics{
			Subscribers:   subscribers.WithLabelValues(name),
			Bytes:         bytes.WithLabelValues(name),
			Snapshots:     snapshots.WithLabelValues(name),
			Conflated:     conflated.WithLabelValues(name),
			WriteTimeouts: timeouts.WithLabelValues(name),
			Goodbyes:      make(map[stream.GoodbyeReason]prometheus.Counter, len(goodbyeReasons)),
			refusals:      make(map[limits.Reason]prometheus.Counter, len(limits.RefusalReasons)),
		}
		for e := stream.Hello; e <= stream.Goodbye; e++ {
			t.Events[e] = events.WithLabelValues(name, e.String())
		}
		for _, reason := range goodbyeReasons {
			t.Goodbyes[reason] = goodbyes.WithLabelValues(name, string(reason))
		}
		for _, reason := range limits.RefusalReasons {
			t.refusals[reason] = refusals.WithLabelValues(name, string(reason))
		}
		m.Transport[name] = t
	}
	m.lists = make(map[limits.Reason]prometheus.Counter, len(limits.RefusalReasons))
	for _, reason := range limits.RefusalReasons {
		m.lists[reason] = refusals.WithLabelValues("list", string(reason))
	}
}

var goodbyeReasons = [...]stream.GoodbyeReason{
	stream.GoodbyeDraining, stream.GoodbyeMaxAge, stream.GoodbyeOverloaded,
	stream.GoodbyeTokenExpired, stream.GoodbyeRevoked, stream.GoodbyeWatchRemoved, stream.GoodbyeWatchReplaced,
	stream.GoodbyeComplete,
}

// Handler serves the registry in the Prometheus text formats.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// StreamOpened counts a stream in; StreamClosed must follow.
func (m *Metrics) StreamOpened(transport string) { m.Transport[transport].Subscribers.Inc() }

// StreamClosed counts a stream out.
func (m *Metrics) StreamClosed(transport string) { m.Transport[transport].Subscribers.Dec() }

// EventsOut counts n written events of type t.
func (m *Metrics) EventsOut(transport string, t stream.EventType, n int) {
	if n > 0 {
		m.Transport[transport].Events[t].Add(float64(n))
	}
}

// BytesOut counts written bytes.
func (m *Metrics) BytesOut(transport string, n int) {
	m.Transport[transport].Bytes.Add(float64(n))
}

// Snapshot counts a snapshot that was sent up to its end_of_snapshot.
func (m *Metrics) Snapshot(transport string) { m.Transport[transport].Snapshots.Inc() }

// Resumed counts, once per stream and watch, how the stream began.
func (m *Metrics) Resumed(transport, outcome string) {
	m.Resumes.WithLabelValues(transport, outcome).Inc()
}

// Conflated counts n changes that a subscriber did not see one by one.
func (m *Metrics) Conflated(transport string, n uint64) {
	if n > 0 {
		m.Transport[transport].Conflated.Add(float64(n))
	}
}

// WriteTimeout counts a stream that was ended because its client did not read.
func (m *Metrics) WriteTimeout(transport string) { m.Transport[transport].WriteTimeouts.Inc() }

// Goodbye counts a stream that was ended, or refused, deliberately.
func (m *Metrics) Goodbye(transport string, reason stream.GoodbyeReason) {
	m.Transport[transport].Goodbyes[reason].Inc()
}

// Refused counts a refused stream, which is also a goodbye.
func (m *Metrics) Refused(transport string, why *limits.Refusal) {
	m.Transport[transport].refusals[why.Reason].Inc()
	m.Goodbye(transport, why.Goodbye())
}

// ListRefused counts a list, or a move of a window, whose view was not opened.
func (m *Metrics) ListRefused(reason limits.Reason) { m.lists[reason].Inc() }

// TimeToEndOfSnapshot observes the time from a stream's start to its first
// end_of_snapshot. trace is its trace, or empty.
func (m *Metrics) TimeToEndOfSnapshot(d time.Duration, trace string) {
	observe(m.snapshots, d, trace)
}

// Written observes the time from the oldest commit of a flush to the end of its write, and with
// the age of its changes at the commit that from their origin. Zero values are not known. trace is the trace
// of the commit, or empty.
func (m *Metrics) Written(now, committed time.Time, age time.Duration, trace string) {
	if committed.IsZero() {
		return
	}
	took := now.Sub(committed)
	observe(m.latency, took, trace)
	if age > 0 {
		m.origin.Observe((age + took).Seconds())
	}
}

// observe adds a duration to a histogram, with its trace as the exemplar, if it has one.
func observe(h prometheus.Histogram, d time.Duration, trace string) {
	if trace == "" {
		h.Observe(d.Seconds())
		return
	}
	h.(prometheus.ExemplarObserver).ObserveWithExemplar(d.Seconds(), prometheus.Labels{"trace_id": trace})
}

// Compressed counts bytes written in compressed streams.
func (m *Metrics) Compressed(raw, zipped int) {
	m.raw.Add(float64(raw))
	m.zipped.Add(float64(zipped))
}

// WatchStretches exports how many stretches the shards have made, how often they sent one, and how many bytes
// their files take, read at each scrape.
func (m *Metrics) WatchStretches(read func() (made, sent uint64, bytes int64)) {
	m.Registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: Namespace + "stretches_made_total", Help: "Stretches of snapshots and resumes that were rendered once for several streams.",
		}, func() float64 { made, _, _ := read(); return float64(made) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: Namespace + "stretches_sent_total", Help: "Stretches that were sent to a stream from a memory file.",
		}, func() float64 { _, sent, _ := read(); return float64(sent) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: Namespace + "stretches_bytes", Help: "Memory taken by the files of stretches that are open: whole pages, with an overhead for each file.",
		}, func() float64 { _, _, bytes := read(); return float64(bytes) }))
}

// WatchPieces exports the statistics of the caches of compressed events and lists, read at each
// scrape.
func (m *Metrics) WatchPieces(caches ...*wire.Cache) {
	stats := func() (all wire.Stats) {
		for _, c := range caches {
			all = all.Plus(c.Stats())
		}
		return all
	}
	counter := func(name, help string, read func(wire.Stats) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: Namespace + name, Help: help},
			func() float64 { return float64(read(stats())) })
	}
	m.Registry.MustRegister(
		counter("compression_cache_hits_total", "Lookups of compressed events and lists that were in the cache.",
			func(s wire.Stats) uint64 { return s.Hits }),
		counter("compression_cache_misses_total", "Lookups of compressed events and lists that were not in the cache, so that they had to be compressed.",
			func(s wire.Stats) uint64 { return s.Misses }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: Namespace + "compression_cache_bytes", Help: "Memory used by the cache of compressed events and lists.",
		}, func() float64 { return float64(stats().Bytes) }))
}
