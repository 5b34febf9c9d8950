package authz

import (
	"log/slog"
	"net/netip"
	"strings"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/loglimit"
)

// RefusalLog logs which hosts, origins and credentials are refused, so that an operator sees
// what is missing in the configuration, or who tries. Clients cause these lines, so there are at
// most refusalsPerMinute of each kind, and texts of clients are cut. No line has a part of a
// credential.
//
// All methods may be called from any goroutine. A nil *RefusalLog logs nothing.
type RefusalLog struct {
	// Static after construction.
	hosts, origins, credentials *slog.Logger
}

const (
	// refusalsPerMinute is how many refusals of one kind are logged.
	refusalsPerMinute = 30
	// refusedKept is how many bytes of a refused host or origin are logged.
	refusedKept = 128
)

// NewRefusalLog returns a log of refusals.
func NewRefusalLog(to *slog.Logger) *RefusalLog {
	limited := func() *slog.Logger { return loglimit.New(to, refusalsPerMinute) }
	return &RefusalLog{hosts: limited(), origins: limited(), credentials: limited()}
}

// Host logs a request for a host that is not served.
func (l *RefusalLog) Host(host string, from netip.Addr) {
	if l != nil {
		l.hosts.Warn("host refused: http.hosts does not list it", "host", cut(host), "client", from)
	}
}

// Origin logs a request of a page that may not read the answer.
func (l *RefusalLog) Origin(origin string, from netip.Addr) {
	if l != nil {
		l.origins.Warn("origin refused: http.allowed_origins does not list it", "origin", cut(origin), "client", from)
	}
}

// credential logs a credential that is not accepted.
func (l *RefusalLog) credential(why *access.Refusal, from netip.Addr) {
	if l != nil {
		l.credentials.Warn("credential refused", "reason", why.Reason, "status", why.Status, "client", from)
	}
}

// cut returns the beginning of a text of a client.
func cut(text string) string {
	if len(text) > refusedKept {
		text = text[:refusedKept] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}
