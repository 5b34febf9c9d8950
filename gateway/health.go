package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/watchtide/watchtide/openapi"
	"github.com/watchtide/watchtide/stream"
)

// handleHealthz says that the process is alive, and which version it is.
func (g *Gateway) handleHealthz(w http.ResponseWriter, _ *http.Request) {
	writeText(w, "ok\nversion: "+g.cfg.Version+"\n")
}

// handleReadyz says whether traffic may be sent here. If not, operators get a
// problem that lists what is the matter with which watch.
func (g *Gateway) handleReadyz(w http.ResponseWriter, r *http.Request) {
	state := g.readiness(time.Now())
	if state.ready() {
		writeText(w, "ready\n")
		return
	}
	p := newProblem(http.StatusServiceUnavailable, "not ready: the operations listener says why")
	p.retryAfter = max(g.cfg.Retry, time.Second)
	if isOperator(r.Context()) {
		p.Detail = "not ready: " + state.summary()
		p.extra, _ = json.Marshal(state) // plain values: cannot fail
	}
	writeProblem(w, p)
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprint(w, text)
}

// readiness is why traffic should not be sent here; the zero value: it may be. Its
// members are those of the problem (RFC 9457, section 3.2).
type readiness struct {
	Draining bool           `json:"draining"`
	Watches  []unreadyWatch `json:"watches"`
}

// unreadyWatch is a watch for which /readyz fails.
type unreadyWatch struct {
	Watch  string    `json:"watch"`
	State  string    `json:"state"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
}

func (r readiness) ready() bool { return !r.Draining && len(r.Watches) == 0 }

// readiness looks at every watch that is primed at start; those that are started
// on demand do not count.
func (g *Gateway) readiness(now time.Time) readiness {
	state := readiness{Draining: g.leaving.Load() || g.admission.isDraining(), Watches: []unreadyWatch{}}
	for _, w := range g.registry.Watches() {
		if v := w.View(); !w.OnDemand() && !servable(v, w.Required(), now, g.cfg.StaleAllowed) {
			s := v.Status()
			state.Watches = append(state.Watches, unreadyWatch{
				Watch: w.Name(), State: s.State.String(), Since: s.Since.UTC().Truncate(time.Millisecond), Reason: s.Full(),
			})
		}
	}
	return state
}

// servable says whether a process may be asked for a watch, or may be for the
// others in spite of it. Each watch is waited for at start. Afterwards only one
// that is required counts: it must have been in sync not longer than allowed ago.
// Where it is not, an old state is better than none, and a watch that cannot be
// primed must not keep all others from their clients for ever. Resyncing counts
// like stale: it is not in sync either, and its Since is when it last was.
func servable(v stream.View, required bool, now time.Time, allowed time.Duration) bool {
	s := v.Status()
	late := now.Sub(s.Since) > allowed
	if required {
		return v.Primed() && (s.State == stream.InSync || !late)
	}
	return v.Primed() || late
}

func (r readiness) summary() string {
	var why []string
	if r.Draining {
		why = append(why, "the gateway is shutting down")
	}
	for _, w := range r.Watches {
		sentence := fmt.Sprintf("watch %q is %s since %s", w.Watch, w.State, w.Since.Format(time.RFC3339))
		if w.Reason != "" {
			sentence += " (" + w.Reason + ")"
		}
		why = append(why, sentence)
	}
	return strings.Join(why, "; ")
}

// handleOpenAPI serves the OpenAPI document.
func (g *Gateway) handleOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	w.Write(openapi.Document)
}

// metricsHandler serves the metrics of this gateway.
func (g *Gateway) metricsHandler() http.Handler { return g.metrics.handler() }
