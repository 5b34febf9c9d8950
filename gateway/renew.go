package gateway

import (
	"errors"
	"net/http"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/problem"
)

// handleRenew extends a stream to the end of the credential of the request, which must be of
// the same principal.
func (g *settings) handleRenew(w http.ResponseWriter, r *http.Request) {
	id := problem.PathParameter(r, "stream")
	err := authz.ErrUnknown
	if who := authz.IdentityOf(r.Context()); who != nil {
		err = g.authorizations.Renew(id, who)
	}
	if err != nil {
		p := notRenewed(err)
		g.lookup.Record(r.Context(), access.AuditEntry{Decision: access.Denied, Action: access.Renew, Stream: id, Status: p.Status, Reason: err.Error()})
		problem.Write(w, p)
		return
	}
	g.lookup.Record(r.Context(), access.AuditEntry{Decision: access.Allowed, Action: access.Renew, Stream: id, Status: http.StatusNoContent})
	w.WriteHeader(http.StatusNoContent)
}

func notRenewed(err error) *problem.Problem {
	switch {
	case errors.Is(err, authz.ErrNotYours):
		return problem.New(http.StatusForbidden, "the stream is of another principal: want a credential of the one that opened it")
	case errors.Is(err, authz.ErrTicket):
		return problem.New(http.StatusForbidden, "a ticket cannot renew a stream: want the credential that a ticket is made of")
	}
	return problem.New(http.StatusNotFound, "there is no such stream at this replica, or it has ended: open another one from its last id")
}
