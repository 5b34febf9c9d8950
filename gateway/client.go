package gateway

import (
	"net/http"

	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
)

// clientAnswer tells a client where its request seems to come from, and whether it is an
// operator's.
type clientAnswer struct {
	Instance string        `json:"instance"`
	Address  string        `json:"address,omitempty"`
	Naming   limits.Naming `json:"naming"`
	Operator bool          `json:"operator"` // the paths for operators answer this client
}

// handleClient answers with the address for which the request is counted: where proxies are
// not configured, it is that of a proxy. A refusal of too many streams names it too.
func (g *settings) handleClient(w http.ResponseWriter, r *http.Request) {
	if _, p := problem.Query(r); p != nil {
		problem.Write(w, p)
		return
	}
	answer := clientAnswer{Instance: g.cfg.Instance, Naming: g.proxies.NamingOf(r), Operator: g.cfg.Metrics && limits.IsOperator(r.Context())}
	switch from := g.proxies.OfRequest(r); {
	case from.Port() != 0:
		answer.Address = from.String()
	case from.IsValid():
		answer.Address = from.Addr().String()
	}
	problem.WriteJSON(w, answer)
}
