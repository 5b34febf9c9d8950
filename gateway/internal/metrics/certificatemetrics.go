package metrics

import (
	"crypto/x509"

	"github.com/prometheus/client_golang/prometheus"
)

// certificateCollector reads the current certificates of the listeners at each scrape.
type certificateCollector struct {
	now func() map[string]*x509.Certificate
}

var descExpiry = desc("certificate_expiry_timestamp_seconds", "When the certificate of a listener expires, in seconds since 1970, by listener: http, grpc or operations. None for a listener without TLS.", "listener")

// Describe implements prometheus.Collector.
func (c certificateCollector) Describe(out chan<- *prometheus.Desc) { describe(out, descExpiry) }

// Collect implements prometheus.Collector.
func (c certificateCollector) Collect(out chan<- prometheus.Metric) {
	for listener, certificate := range c.now() {
		gauge(out, descExpiry, seconds(certificate.NotAfter), listener)
	}
}

// WatchCertificates exports when the certificates of listeners expire. now returns the current
// ones.
func (m *Metrics) WatchCertificates(now func() map[string]*x509.Certificate) {
	m.Registry.MustRegister(certificateCollector{now})
}
