package gateway

import (
	"net/http"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/problem"
)

const deliveryPath = "/v1/delivery"

// handleDelivery observes when a browser has painted changes. The answer does not say which of
// them are known here: that would tell of resources that the client may not see.
func (g *settings) handleDelivery(w http.ResponseWriter, r *http.Request) {
	received := time.Now()
	if _, p := problem.Query(r); p != nil {
		problem.Write(w, p)
		return
	}
	if p := g.reports.Admit(g.reporter(r)); p != nil {
		problem.Write(w, p)
		return
	}
	report, p := introspection.ReadReport(r)
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
	if id := authz.IdentityOf(r.Context()); id != nil {
		return id
	}
	return &credential.Identity{Principal: &access.Principal{Mechanism: access.Anonymous}, Address: g.proxies.OfRequest(r).Addr()}
}

// observe counts the changes of a report whose commits are remembered, unless the client may not
// see one of the watches.
func (g *settings) observe(r *http.Request, report introspection.DeliveryReport, received time.Time) *problem.Problem {
	took := make(map[string][]time.Duration, len(report.Painted))
	for _, c := range report.Painted {
		entry, committed, known, p := g.lookup.CommittedAt(r.Context(), c.Watch, c.Revision)
		if p != nil {
			return p
		}
		if known {
			took[entry] = append(took[entry], introspection.Took(committed, received, c.Ago, report.RoundTrip))
		}
	}
	for entry, all := range took {
		for _, d := range all {
			g.metrics.Delivered(entry, d)
			g.series.TallyOf(entry).Delivered(d)
		}
	}
	return nil
}
