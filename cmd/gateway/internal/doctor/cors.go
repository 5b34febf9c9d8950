package doctor

import (
	"context"
	"net/http"
	"strings"

	"github.com/watchtide/watchtide/client"
)

// checkCORS examines whether pages of the origin may read.
func (e *Examination) checkCORS(ctx context.Context) {
	switch {
	case e.origin == nil:
		e.unknown(ctx, CORS, "want --origin to examine pages of another origin")
		return
	case e.origin.Scheme == e.base.Scheme && e.origin.Host == e.base.Host:
		e.ok(ctx, CORS, "pages of %s are of the gateway's own origin", e.options.Origin)
		return
	}
	for _, path := range []string{listPath, e.events()} {
		found, mend, err := e.sharedWith(ctx, path)
		if err != nil {
			e.unknown(ctx, CORS, "%s cannot be read: %s", path, because(err))
			return
		}
		if found != "" {
			e.problem(ctx, CORS, mend, "pages of %s cannot read %s: %s", e.options.Origin, path, found)
			return
		}
	}
	if found, mend := e.preflight(ctx); found != "" {
		e.problem(ctx, CORS, mend, "pages of %s cannot send Authorization: %s", e.options.Origin, found)
		return
	}
	e.ok(ctx, CORS, "pages of %s may read", e.options.Origin)
}

const allowOrigin = "add the origin to http.allowed_origins, and let the proxy pass on Origin"

// sharedWith examines an answer to a page of the origin. found is "" if it may be read.
func (e *Examination) sharedWith(ctx context.Context, path string) (found, mend string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	a, err := e.do(ctx, request{path: path, header: http.Header{"Origin": {e.options.Origin}, "Accept": {"*/*"}}, fresh: true})
	if err != nil {
		return "", "", err
	}
	defer a.Close()
	if a.StatusCode != http.StatusOK {
		return "", "", client.ReadProblem(a.Response)
	}
	found, mend = e.shares(a.Header)
	return found, mend, nil
}

// shares reads the headers that let a page read.
func (e *Examination) shares(h http.Header) (found, mend string) {
	const name = "Access-Control-Allow-Origin"
	switch values := h.Values(name); {
	case len(values) == 0:
		return "there is no " + name, allowOrigin
	case len(values) > 1 || strings.Contains(values[0], ","):
		return name + " comes more than once, which browsers refuse", "let the gateway alone set it: remove it from the proxy"
	case values[0] != e.options.Origin:
		return name + " is " + shortened(values[0]) + ", which does not allow credentials from there", "let the gateway alone set it: remove it from the proxy"
	case h.Get("Access-Control-Allow-Credentials") != "true":
		return "Access-Control-Allow-Credentials is missing", "let the gateway alone set it: remove it from the proxy"
	}
	return "", ""
}

// preflight asks as a browser does before it sends a token. found is "" if it may be sent.
func (e *Examination) preflight(ctx context.Context) (found, mend string) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	a, err := e.do(ctx, request{method: http.MethodOptions, path: e.events(), anonymous: true, header: http.Header{
		"Origin": {e.options.Origin}, "Access-Control-Request-Method": {"GET"}, "Access-Control-Request-Headers": {"authorization,last-event-id"},
	}})
	const pass = "let the proxy pass on OPTIONS, without a credential, to the gateway"
	if err != nil {
		return because(err), pass
	}
	defer a.Close()
	if a.StatusCode/100 != 2 {
		return "OPTIONS is answered with " + shortened(client.ReadProblem(a.Response).Error()), pass
	}
	if found, mend := e.shares(a.Header); found != "" {
		return "OPTIONS: " + found, mend
	}
	allowed := strings.ToLower(strings.Join(a.Header.Values("Access-Control-Allow-Headers"), ","))
	if !strings.Contains(allowed, "authorization") || !strings.Contains(allowed, "last-event-id") {
		return "OPTIONS does not allow the headers Authorization and Last-Event-ID", pass
	}
	return "", ""
}
