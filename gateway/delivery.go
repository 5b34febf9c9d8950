package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"time"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/access/principal"
	"github.com/watchtide/watchtide/gateway/internal/access"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/quota"
	"golang.org/x/time/rate"
)

const (
	deliveryPath = "/v1/delivery"
	// maxReport is the maximum size of a delivery report, in bytes.
	maxReport = 1 << 10
	// maxPainted is how many changes a delivery report may have.
	maxPainted = 8
	// oldestPaint is how long ago a change may have been painted, in milliseconds.
	oldestPaint = 60_000
	// reportsPerSecond is how many delivery reports are taken of all clients together, on average
	// over quota.Burst: enough for a sample, at little cost.
	reportsPerSecond = 100
)

// reportRate limits delivery reports: one per second of each client, and reportsPerSecond in all.
// All methods may be called from any goroutine.
type reportRate struct {
	// Static after construction.
	each *quota.Table
	all  *rate.Limiter
}

func newReportRate() *reportRate {
	burst := reportsPerSecond * int(quota.Burst/time.Second)
	return &reportRate{quota.New(quota.Limits{RequestsPerSecond: 1}), rate.NewLimiter(reportsPerSecond, burst)}
}

// admit counts a report, or refuses it. A report of a client that sends too many is not counted
// among all. The status is 429 for both: with 503, a proxy could take the gateway for ill.
func (l *reportRate) admit(of *credential.Identity) *problem.Problem {
	if wait := l.each.Request(of); wait > 0 {
		return tooManyReports(wait, "too many delivery reports came from this client: want one per second at most")
	}
	if !l.all.Allow() {
		return tooManyReports(time.Second, "too many delivery reports came from all clients together: %d per second are taken, as a sample", reportsPerSecond)
	}
	return nil
}

func tooManyReports(wait time.Duration, format string, args ...any) *problem.Problem {
	p := problem.New(http.StatusTooManyRequests, format, args...)
	p.RetryAfter = max(wait, time.Second)
	return p
}

// deliveryReport is what a browser says of changes that it has painted. It has no time of day, so
// that the clock of the browser does not matter.
type deliveryReport struct {
	RoundTrip float64   `json:"round_trip_ms"` // the least of its reports so far; 0: unknown
	Painted   []painted `json:"painted"`
}

// painted is a change, and how long before the report it was painted.
type painted struct {
	Watch    string  `json:"watch"`
	Revision uint64  `json:"revision,string"`
	Ago      float64 `json:"ago_ms"`
}

// handleDelivery observes when a browser has painted changes. The answer does not say which of
// them are known here: that would tell of resources that the client may not see.
func (g *settings) handleDelivery(w http.ResponseWriter, r *http.Request) {
	received := time.Now()
	if _, p := problem.Query(r); p != nil {
		problem.Write(w, p)
		return
	}
	if p := g.reports.admit(g.reporter(r)); p != nil {
		problem.Write(w, p)
		return
	}
	report, p := readReport(r)
	if p == nil {
		p = g.observe(r, report, received)
	}
	if p != nil {
		problem.Write(w, p)
		return
	}
	problem.NoStore(w.Header())
	w.WriteHeader(http.StatusNoContent)
}

// reporter returns for whom a report counts.
func (g *settings) reporter(r *http.Request) *credential.Identity {
	if id := access.IdentityOf(r.Context()); id != nil {
		return id
	}
	return &credential.Identity{Principal: &principal.Principal{Mechanism: principal.Anonymous}, Address: g.proxies.OfRequest(r).Addr()}
}

// readReport reads the body of a request.
func readReport(r *http.Request) (deliveryReport, *problem.Problem) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxReport+1))
	switch {
	case len(body) > maxReport:
		return deliveryReport{}, problem.New(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", maxReport)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return deliveryReport{}, problem.New(http.StatusRequestTimeout, "the body did not arrive in time: %d bytes did", len(body))
	case err != nil:
		return deliveryReport{}, problem.BadParameter("body", "the body broke off after %d bytes: %v", len(body), err)
	}
	return parseReport(body)
}

// parseReport returns the report that a body is, if all of it is in range.
func parseReport(body []byte) (report deliveryReport, p *problem.Problem) {
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&report); err != nil || !json.Valid(body) {
		return deliveryReport{}, problem.BadParameter("body", `the body is no delivery report: want an object such as {"round_trip_ms":12.5,"painted":[{"watch":"notes","revision":"41","ago_ms":3}]}`)
	}
	if n := len(report.Painted); n == 0 || n > maxPainted {
		return deliveryReport{}, problem.BadParameter("body", "painted has %d changes: want 1 to %d", n, maxPainted)
	}
	if report.RoundTrip < 0 || report.RoundTrip > oldestPaint {
		return deliveryReport{}, problem.BadParameter("body", "round_trip_ms is %g: want 0 to %d", report.RoundTrip, oldestPaint)
	}
	for _, c := range report.Painted {
		if c.Ago < 0 || c.Ago > oldestPaint {
			return deliveryReport{}, problem.BadParameter("body", "ago_ms is %g: want 0 to %d", c.Ago, oldestPaint)
		}
	}
	return report, nil
}

// observe counts the changes of a report whose commits are remembered, unless the client may not
// see one of the watches.
func (g *settings) observe(r *http.Request, report deliveryReport, received time.Time) *problem.Problem {
	took := make(map[string][]time.Duration, len(report.Painted))
	for _, c := range report.Painted {
		entry, committed, known, p := g.lookup.CommittedAt(r.Context(), c.Watch, c.Revision)
		if p != nil {
			return p
		}
		if known {
			took[entry] = append(took[entry], delivered(committed, received, c.Ago, report.RoundTrip))
		}
	}
	for entry, all := range took {
		for _, d := range all {
			g.metrics.Delivered(entry, d)
		}
	}
	return nil
}

// delivered returns the time from the commit of a change until it was painted. The report is
// taken to have been under way for half of the round trip, so the error is at most the other
// half, however different the two directions are.
func delivered(committed, received time.Time, ago, roundTrip float64) time.Duration {
	before := time.Duration(math.Round((ago + roundTrip/2) * float64(time.Millisecond)))
	return max(0, received.Sub(committed)-before)
}
