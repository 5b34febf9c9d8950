package introspection

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/problem"
)

const (
	// MaxBytes is the maximum size of a report.
	MaxBytes = 1 << 10
	// maxPainted is how many changes a report may have.
	maxPainted = 8
	// oldestPaint is how long ago a change may have been painted, in milliseconds.
	oldestPaint = 60_000
)

// DeliveryReport is what a browser says of changes that it has painted. It has no time of day, so
// that the clock of the browser does not matter.
type DeliveryReport struct {
	RoundTrip float64   `json:"round_trip_ms"` // the least of its reports so far; 0: unknown
	Painted   []Painted `json:"painted"`
}

// Painted is a change, and how long before the report it was painted.
type Painted struct {
	Watch    string  `json:"watch"`
	Revision uint64  `json:"revision,string"`
	Ago      float64 `json:"ago_ms"`
}

// ReadReport reads the body of a request.
func ReadReport(r *http.Request) (DeliveryReport, *problem.Problem) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBytes+1))
	switch {
	case len(body) > MaxBytes:
		return DeliveryReport{}, problem.New(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", MaxBytes)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return DeliveryReport{}, problem.New(http.StatusRequestTimeout, "the body did not arrive in time: %d bytes did", len(body))
	case err != nil:
		return DeliveryReport{}, problem.BadParameter("body", "the body broke off after %d bytes: %v", len(body), err)
	}
	return parse(body)
}

// parse returns the report that a body is, if all of it is in range.
func parse(body []byte) (report DeliveryReport, p *problem.Problem) {
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&report); err != nil || !json.Valid(body) {
		return DeliveryReport{}, problem.BadParameter("body", `the body is no delivery report: want an object such as {"round_trip_ms":12.5,"painted":[{"watch":"notes","revision":"41","ago_ms":3}]}`)
	}
	if n := len(report.Painted); n == 0 || n > maxPainted {
		return DeliveryReport{}, problem.BadParameter("body", "painted has %d changes: want 1 to %d", n, maxPainted)
	}
	if report.RoundTrip < 0 || report.RoundTrip > oldestPaint {
		return DeliveryReport{}, problem.BadParameter("body", "round_trip_ms is %g: want 0 to %d", report.RoundTrip, oldestPaint)
	}
	for _, c := range report.Painted {
		if c.Ago < 0 || c.Ago > oldestPaint {
			return DeliveryReport{}, problem.BadParameter("body", "ago_ms is %g: want 0 to %d", c.Ago, oldestPaint)
		}
	}
	return report, nil
}

// Took returns the time from the commit of a change until it was painted. The report is
// taken to have been under way for half of the round trip, so the error is at most the other
// half, however different the two directions are.
func Took(committed, received time.Time, ago, roundTrip float64) time.Duration {
	before := time.Duration(math.Round((ago + roundTrip/2) * float64(time.Millisecond)))
	return max(0, received.Sub(committed)-before)
}
