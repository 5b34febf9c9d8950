package introspection

import (
	"net/http"
	"time"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"golang.org/x/time/rate"
)

// PerSecond is how many delivery reports are taken of all clients together, on average
// over limits.Burst: enough for a sample, at little cost.
const PerSecond = 100

// DeliveryRate limits delivery reports: one per second of each client, and PerSecond in all.
// All methods may be called from any goroutine.
type DeliveryRate struct {
	// Static after construction.
	each *limits.Quotas
	all  *rate.Limiter
}

// NewDeliveryRate returns the rate of a gateway that has no reports yet.
func NewDeliveryRate() *DeliveryRate {
	burst := PerSecond * int(limits.Burst/time.Second)
	return &DeliveryRate{limits.NewQuotas(limits.QuotaLimits{RequestsPerSecond: 1}), rate.NewLimiter(PerSecond, burst)}
}

// Admit counts a report, or refuses it. A report of a client that sends too many is not counted
// among all. The status is 429 for both: with 503, a proxy could take the gateway for ill.
func (l *DeliveryRate) Admit(of *credential.Identity) *problem.Problem {
	if wait := l.each.Request(of); wait > 0 {
		return tooManyReports(wait, "too many delivery reports came from this client: want one per second at most")
	}
	if !l.all.Allow() {
		return tooManyReports(time.Second, "too many delivery reports came from all clients together: %d per second are taken, as a sample", PerSecond)
	}
	return nil
}

func tooManyReports(wait time.Duration, format string, args ...any) *problem.Problem {
	p := problem.New(http.StatusTooManyRequests, format, args...)
	p.RetryAfter = max(wait, time.Second)
	return p
}
