package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/access/audit"
	"github.com/watchtide/watchtide/access/principal"
	"github.com/watchtide/watchtide/access/refusal"
)

// accessMetrics count who asks. No label has anything of a client in it.
type accessMetrics struct {
	identified map[string]prometheus.Counter // by mechanism
	refused    map[refusal.Reason]prometheus.Counter
	limited    map[string]prometheus.Counter // by mechanism
}

func (m *Metrics) makeAccess() {
	identified := counterVec("auth_total", "Requests and calls whose credential was accepted, by how it proves who asks: token, jwt or certificate, which are also behind sessions and tickets; anonymous: there was none.", "mechanism")
	refused := counterVec("auth_failures_total", "Credentials that were not accepted, by why, and requests that lacked one.", "reason")
	limited := counterVec("requests_refused_total", "Requests and calls that were refused because their principal, or their address without one, has made too many, by how it proves who asks.", "mechanism")
	m.access = accessMetrics{identified: map[string]prometheus.Counter{}, refused: map[refusal.Reason]prometheus.Counter{}, limited: map[string]prometheus.Counter{}}
	for _, mechanism := range []string{principal.Anonymous, principal.Token, principal.JWT, principal.Certificate} {
		m.access.identified[mechanism] = identified.WithLabelValues(mechanism)
		m.access.limited[mechanism] = limited.WithLabelValues(mechanism)
	}
	for _, reason := range refusal.Reasons {
		m.access.refused[reason] = refused.WithLabelValues(string(reason))
	}
	m.Registry.MustRegister(identified, refused, limited)
}

// WatchAudit exports how many lines the audit log has lost.
func (m *Metrics) WatchAudit(l *audit.Log) {
	m.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: Namespace + "audit_dropped_total", Help: "Decisions that the audit log has no line for, because its output was too slow or could not be written.",
	}, func() float64 { return float64(l.Dropped()) }))
}

// Identified counts a request of which it is known who makes it.
func (m *Metrics) Identified(mechanism string) { m.access.identified[mechanism].Inc() }

// RequestRefused counts a request of somebody who has made too many.
func (m *Metrics) RequestRefused(mechanism string) { m.access.limited[mechanism].Inc() }

// CredentialRefused counts a credential that is not accepted.
func (m *Metrics) CredentialRefused(reason refusal.Reason) { m.access.refused[reason].Inc() }
