package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

// handleHealthz reports that the process is alive. Operators are told which one it is.
func (g *settings) handleHealthz(w http.ResponseWriter, r *http.Request) {
	text := "ok\n"
	if limits.IsOperator(r.Context()) {
		text += fmt.Sprintf("version: %s\ninstance: %s\nstarted: %s\nuptime: %s\n", g.cfg.Version, g.cfg.Instance,
			g.started.UTC().Format(time.RFC3339), time.Since(g.started).Truncate(time.Second))
	}
	writeText(w, text)
}

// handleReadyz reports whether traffic may be sent here. If not, operators get a
// problem that lists the failing watches and the reasons.
func (g *settings) handleReadyz(w http.ResponseWriter, r *http.Request) {
	state := g.readiness(time.Now())
	if state.ready() {
		text := []string{"ready"}
		if limits.IsOperator(r.Context()) {
			text = append(text, state.remarks()...)
		}
		writeText(w, strings.Join(text, "\n")+"\n")
		return
	}
	p := problem.New(http.StatusServiceUnavailable, "not ready: the operations listener says why")
	if state.Draining {
		p.Detail = "not ready: " + draining
	}
	p.RetryAfter = max(g.cfg.Retry, time.Second)
	if limits.IsOperator(r.Context()) {
		p.Detail = "not ready: " + state.summary()
		p.Extra, _ = json.Marshal(state) // plain values: cannot fail
	}
	problem.Write(w, p)
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprint(w, text)
}

// readiness has the reasons why no traffic should be sent here, if there are any. Its members
// are those of the problem (RFC 9457, section 3.2).
type readiness struct {
	Draining bool           `json:"draining"`
	Watches  []unreadyWatch `json:"watches"`
	// Configuration says why the newest configuration is not in effect. That alone is no reason
	// to send traffic elsewhere.
	Configuration string `json:"configuration,omitempty"`
	// Credentials says which credentials cannot be checked, and why; all others can.
	Credentials string `json:"-"`
}

// remarks returns the problems that are no reason to send traffic elsewhere.
func (r readiness) remarks() (out []string) {
	for _, text := range []string{r.Configuration, r.Credentials} {
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}

// unreadyWatch is a watch for which /readyz fails.
type unreadyWatch struct {
	Watch  string    `json:"watch"`
	State  string    `json:"state"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
}

func (r readiness) ready() bool { return !r.Draining && len(r.Watches) == 0 }

// readiness examines every watch that is primed at start; watches that are started on
// demand do not count.
func (g *settings) readiness(now time.Time) readiness {
	state := readiness{Draining: g.leaving.Load() || g.admission.IsDraining(), Watches: []unreadyWatch{}, Configuration: g.outdated()}
	if g.who != nil {
		if err := g.who.Ready(); err != nil {
			state.Credentials = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
	}
	for _, w := range g.registry.Watches() {
		if v := w.Snapshot(); !w.OnDemand() && !servable(v, w.Required(), w.Late(), now, g.cfg.StaleAllowed) {
			s := v.Status()
			state.Watches = append(state.Watches, unreadyWatch{
				Watch: w.Name(), State: s.State.String(), Since: s.Since.UTC().Truncate(time.Millisecond), Reason: s.Full(),
			})
		}
	}
	return state
}

// servable reports whether a watch lets this process take traffic, either because it
// can be served or because the others can be served without it. Each watch is waited
// for at start. After that only a required watch counts: it must have been in sync no
// longer ago than allowed. For any other watch, an old state is better than none, and
// a watch that cannot be primed must not keep all others from their clients forever.
// Resyncing counts as stale: it is not in sync either, and its Since is when it last
// was. A watch that was added late counts as if it had been in sync until then: a reload on
// all replicas at once must not take all of them out of service while it is primed.
func servable(v log.Snapshot, required, added bool, now time.Time, allowed time.Duration) bool {
	s := v.Status()
	late := now.Sub(s.Since) > allowed
	if required {
		return (v.Primed() || added) && (s.State == stream.InSync || !late)
	}
	return v.Primed() || late || added
}

// draining is what /readyz says to everybody.
const draining = "draining: the gateway is shutting down"

func (r readiness) summary() string { return strings.Join(r.reasons(), "; ") }

// reasons are sentences that say why no traffic should be sent here, and what else is wrong.
func (r readiness) reasons() []string {
	why := []string{}
	if r.Draining {
		why = append(why, draining)
	}
	for _, w := range r.Watches {
		sentence := fmt.Sprintf("watch %q is %s since %s", w.Watch, w.State, w.Since.Format(time.RFC3339))
		if w.Reason != "" {
			sentence += " (" + w.Reason + ")"
		}
		why = append(why, sentence)
	}
	return append(why, r.remarks()...)
}

// handleOpenAPI serves the OpenAPI document.
func (g *Gateway) handleOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	w.Write(watchtidev1.Document)
}

// metricsHandler serves the metrics of this gateway.
func (g *Gateway) metricsHandler() http.Handler { return g.metrics.Handler() }
