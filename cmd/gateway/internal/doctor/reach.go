package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/client"
)

// list is what a replica answers to GET /v1/watches.
type list struct {
	Instance string  `json:"instance"`
	Watches  []watch `json:"watches"`
}

// watch is one watch, as far as it is examined.
type watch struct {
	Name     string    `json:"name"`
	State    string    `json:"state"`
	Since    time.Time `json:"since"`
	Epoch    string    `json:"epoch"`
	Upstream struct {
		Since time.Time `json:"since"`
	} `json:"upstream"`
}

const listPath = "/v1/watches"

// reach makes the first requests. false: nothing else can be examined.
func (e *Examination) reach(ctx context.Context) bool {
	e.doing(2*answerWithin, "connecting to %s", e.base.Redacted())
	if e.base.Scheme == "https" && !e.checkCertificate(ctx) {
		return false
	}
	a, err := e.read(ctx, request{path: listPath}, &e.list)
	if err == nil && e.list.Instance == "" {
		err = errNoGateway
	}
	if err != nil {
		e.unreachable(ctx, a, err)
		return false
	}
	e.clock.take(a)
	e.ok(ctx, Connection, "the gateway answers, from %s", a.remote)
	return e.choose(ctx)
}

// choose chooses the watch whose streams are used. false: there is none.
func (e *Examination) choose(ctx context.Context) bool {
	if len(e.list.Watches) == 0 {
		mend := "configure a watch"
		if e.options.Token == nil {
			mend = "want --token-file FILE if the gateway asks for credentials, or configure a watch"
		}
		e.problem(ctx, Gateway, mend, "there is no watch that may be seen, so that streams cannot be examined")
		return false
	}
	e.watch = e.list.Watches[0]
	found := e.options.Watch == ""
	for _, w := range e.list.Watches {
		switch {
		case w.Name == e.options.Watch:
			e.watch, found = w, true
		case e.options.Watch == "" && w.State == inSync && e.watch.State != inSync:
			e.watch = w
		}
	}
	if !found {
		e.problem(ctx, Gateway, "name one that GET /v1/watches lists", "there is no watch %q", shortened(e.options.Watch))
	}
	return found
}

const inSync = "in_sync"

// unreachable reports why the first request failed. a may be nil.
func (e *Examination) unreachable(ctx context.Context, a *answer, err error) {
	const listens = "see that a proxy or the gateway listens there, and that no firewall is in between"
	var refused *client.Problem
	switch {
	case errors.As(err, &refused):
		e.refused(ctx, a, refused)
	case errors.Is(err, errNoGateway):
		e.problem(ctx, Gateway, "let the proxy pass on all paths below /v1/ to the gateway", "the answer to %s is none of a gateway, but %s", listPath, describe(a))
	case a != nil:
		e.problem(ctx, Gateway, listens, "the answer to %s cannot be read: %s", listPath, because(err))
	default:
		e.problem(ctx, Connection, listens, "there is no answer: %s", because(err))
	}
}

// describe describes an answer that is none of a gateway.
func describe(a *answer) string {
	text := fmt.Sprintf("%d %s", a.StatusCode, http.StatusText(a.StatusCode))
	if kind := a.Header.Get("Content-Type"); kind != "" {
		text += " of the type " + shortened(kind)
	}
	return text
}

// refused reports a status other than 200.
func (e *Examination) refused(ctx context.Context, a *answer, p *client.Problem) {
	switch {
	case p.Status/100 == 3:
		e.problem(ctx, Connection, "use the URL to which it leads: browsers send no credentials after a redirect to another origin", "the answer is a redirect to %q", shortened(a.Header.Get("Location")))
	case p.Status == http.StatusMisdirectedRequest:
		e.problem(ctx, Host, "add the name to http.hosts in the configuration of the gateway, or let the proxy pass on the name that browsers use (Host)", "the gateway is not served under this name: %s", shortened(p.Detail))
	case p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden:
		e.unauthorized(ctx, p)
	case p.Status == http.StatusBadGateway || p.Status == http.StatusServiceUnavailable || p.Status == http.StatusGatewayTimeout:
		e.problem(ctx, Gateway, "see that a replica runs and is ready, and that the proxy has its address", "a proxy answers, and no replica behind it: %s", shortened(p.Error()))
	default:
		e.problem(ctx, Gateway, "let the proxy pass on all paths below /v1/ to the gateway", "the answer to %s is %s", listPath, shortened(p.Error()))
	}
}

func (e *Examination) unauthorized(ctx context.Context, p *client.Problem) {
	if e.unverified {
		e.unknown(ctx, Credentials, "the gateway asks for credentials, which are not sent while the certificate is wrong; nothing else can be examined")
		return
	}
	e.problem(ctx, Credentials, "want --token-file FILE, or a token in WATCHTIDE_TOKEN, that the gateway accepts", "the gateway does not accept the request: %s", shortened(p.Error()))
}
