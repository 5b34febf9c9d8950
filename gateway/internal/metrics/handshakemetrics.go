package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
)

// handshakeCollector reads the figures of TLS handshakes at each scrape.
type handshakeCollector struct{ of *netconn.Handshakes }

var (
	descHandshakes      = desc("handshakes", "TLS handshakes that go on.")
	descHandshakesEnded = desc("handshakes_total", "TLS handshakes that have ended, by result: completed; failed: the client left, or said something wrong; late: it took longer than 10 s; refused: its address had too many; displaced: there were too many, and it had lasted longest.", "result")
)

// Describe implements prometheus.Collector.
func (c handshakeCollector) Describe(out chan<- *prometheus.Desc) {
	describe(out, descHandshakes, descHandshakesEnded)
}

// Collect implements prometheus.Collector.
func (c handshakeCollector) Collect(out chan<- prometheus.Metric) {
	gauge(out, descHandshakes, float64(c.of.Count()))
	for _, result := range netconn.HandshakeResults {
		counter(out, descHandshakesEnded, c.of.Ended(result), string(result))
	}
}

// WatchHandshakes exports the number of TLS handshakes.
func (m *Metrics) WatchHandshakes(h *netconn.Handshakes) {
	m.Registry.MustRegister(handshakeCollector{h})
}
