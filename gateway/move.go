package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream/watch"
)

// movesPerClient is how many moves of windows a second are taken of one principal, or of one address without a
// credential, on average over limits.Burst.
const movesPerClient = 50

// handleMove makes an open stream go on with another window. The request may be about any stream of its
// principal, whose hello has told its name.
func (g *settings) handleMove(w http.ResponseWriter, r *http.Request) {
	query, p := problem.ParseQuery(r.URL.RawQuery, authz.MoveParameters)
	if p != nil {
		problem.Write(w, p)
		return
	}
	if wait := g.moves.Request(g.reporter(r)); wait > 0 {
		p := problem.New(http.StatusTooManyRequests, "too many windows were moved by this client: want %d moves a second at most", movesPerClient)
		p.RetryAfter = max(wait, time.Second)
		problem.Write(w, p)
		return
	}
	client := limits.ClientOf(g.proxies.OfRequest(r).Addr())
	open := func(part authz.Part) (*watch.Watch, *problem.Problem) { return g.openWindow(part, client) }
	number, p := g.authorizations.Move(r.Context(), g.lookup, problem.PathParameter(r, "stream"), authz.MoveOf(query), open)
	if p != nil {
		problem.Write(w, p)
		return
	}
	problem.NoStore(w.Header())
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, "{\"move\":%d}\n", number)
}

// openWindow returns the window to which a stream moves.
func (g *settings) openWindow(part authz.Part, c limits.Client) (*watch.Watch, *problem.Problem) {
	w, err := g.deps.OpenWindow(part, c)
	var refused *limits.Refusal
	switch {
	case errors.As(err, &refused):
		return nil, g.refuseList(refused)
	case err != nil:
		return nil, problem.Of(err)
	}
	return w, nil
}
