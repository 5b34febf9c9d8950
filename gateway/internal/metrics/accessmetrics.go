package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/watchtide/watchtide/access"
)

// accessMetrics count credentials and decisions. No label has a value that a client chooses.
type accessMetrics struct {
	identified map[string]prometheus.Counter // by mechanism
	refused    map[access.Reason]prometheus.Counter
	limited    map[string]prometheus.Counter // by mechanism
	switched   prometheus.Counter
	moved      prometheus.Counter
	failures   ruleFailures
}

// ruleFailures adds up the failures of all policies of a gateway, each of which counts from
// zero.
type ruleFailures struct {
	mu     sync.Mutex    // guards the following fields
	now    func() uint64 // of the current policy
	before uint64        // of the former policies
}

func (m *Metrics) makeAccess() {
	identified := counterVec("auth_total", "Requests and calls whose credential was accepted, by how it proves who asks: token, jwt, certificate or kubernetes, which are also behind sessions and tickets; anonymous: there was none.", "mechanism")
	refused := counterVec("auth_failures_total", "Credentials that were not accepted, by why, and requests that lacked one.", "reason")
	limited := counterVec("requests_refused_total", "Requests and calls that were refused because their principal, or their address without one, has made too many, by how it proves who asks.", "mechanism")
	m.access.identified, m.access.refused, m.access.limited = map[string]prometheus.Counter{}, map[access.Reason]prometheus.Counter{}, map[string]prometheus.Counter{}
	m.access.switched = prometheus.NewCounter(prometheus.CounterOpts{
		Name: Namespace + "view_switches_total", Help: "Times that a stream went on with another part of a watch, since its principal may see something else.",
	})
	m.access.moved = prometheus.NewCounter(prometheus.CounterOpts{
		Name: Namespace + "window_moves_total", Help: "Times that a stream went on with another window, since its client has moved it. Moves that another one has overtaken are not counted.",
	})
	m.access.failures.now = func() uint64 { return 0 }
	failures := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: Namespace + "rule_failures_total", Help: "Expressions of roles and rules without a result, so that they allow nothing. Each counts once for all principals with the same values, until they are forgotten, and once for each write or delete. Rules of views are in view_failures_total.",
	}, m.access.failures.total)
	for _, mechanism := range []string{access.Anonymous, access.Token, access.JWT, access.Certificate, access.Kubernetes} {
		m.access.identified[mechanism] = identified.WithLabelValues(mechanism)
		m.access.limited[mechanism] = limited.WithLabelValues(mechanism)
	}
	for _, reason := range access.Reasons {
		m.access.refused[reason] = refused.WithLabelValues(string(reason))
	}
	m.Registry.MustRegister(identified, refused, limited, m.access.switched, m.access.moved, failures)
}

// WatchAudit exports how many lines the audit log has lost.
func (m *Metrics) WatchAudit(l *access.AuditLog) {
	m.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: Namespace + "audit_dropped_total", Help: "Decisions that the audit log has no line for, because its output was too slow or could not be written.",
	}, func() float64 { return float64(l.Dropped()) }))
}

// WatchRules counts the failures of another policy from now on, which now returns, in addition to
// those so far.
func (m *Metrics) WatchRules(now func() uint64) {
	f := &m.access.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before += f.now()
	f.now = now
}

func (f *ruleFailures) total() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return float64(f.before + f.now())
}

// Switched counts a switch of a stream to another part of a watch, or a move of a window.
func (m *Metrics) Switched(moved bool) {
	if moved {
		m.access.moved.Inc()
		return
	}
	m.access.switched.Inc()
}

// Identified counts a request by the mechanism of its principal.
func (m *Metrics) Identified(mechanism string) { m.access.identified[mechanism].Inc() }

// RequestRefused counts a request that is refused because its principal, or its address, has
// made too many.
func (m *Metrics) RequestRefused(mechanism string) { m.access.limited[mechanism].Inc() }

// CredentialRefused counts a credential that is not accepted, by reason.
func (m *Metrics) CredentialRefused(reason access.Reason) { m.access.refused[reason].Inc() }
