package rest

import (
	"bytes"
	"cmp"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/problem"
)

// BeginLogin sends a browser to the provider with which its user signs in. The session that the
// browser has until then ends. Pages of other sites cannot begin that.
func (a *API) BeginLogin(w http.ResponseWriter, r *http.Request) {
	query, p := problem.Query(r, "return")
	if p == nil && !a.Authenticator.IsOfOurPage(r) {
		p = problem.New(http.StatusForbidden, "the request comes from a page of another site: sign in on the page of this gateway")
	}
	back := cmp.Or(query.Get("return"), "/")
	if p == nil && !credential.IsReturn(back) {
		p = problem.BadParameter("return", "want a path of this gateway, such as /#/watches/orders: up to 1024 printable ASCII characters that begin with one slash, without backslashes")
	}
	if p != nil {
		notSignedIn(w, r, p)
		return
	}
	to, cookie, err := a.Authenticator.BeginSignIn(r, back)
	if err != nil {
		notSignedIn(w, r, a.refused(r, access.Login, err))
		return
	}
	forget, ended := a.Authenticator.EndSession(r)
	a.logout(r, ended)
	redirect(w, to, forget, cookie)
}

// FinishLogin makes the answer of the provider a session, and sends the browser back to where its
// user came from.
func (a *API) FinishLogin(w http.ResponseWriter, r *http.Request) {
	done, err := a.Authenticator.FinishSignIn(r)
	if err != nil {
		notSignedIn(w, r, a.refused(r, access.Login, err))
		return
	}
	whose := authz.WithIdentity(r.Context(), done.By)
	a.Service.Lookup.Record(whose, access.AuditEntry{Decision: access.Allowed, Action: access.Login, Status: http.StatusSeeOther})
	redirect(w, done.To, done.Forget, done.Cookie)
}

// redirect sends a browser to a URL. Its address, with what the provider has answered, is told to
// nobody.
func redirect(w http.ResponseWriter, to string, cookies ...*http.Cookie) {
	for _, c := range cookies {
		http.SetCookie(w, c)
	}
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", to)
	problem.NoStore(w.Header())
	w.WriteHeader(http.StatusSeeOther)
}

// failed is the page of a sign-in that has failed. Its link is relative, since a proxy may serve
// the gateway under a path.
var failed = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Not signed in</title>
<h1>Not signed in</h1>
<p role="alert">The gateway says: {{.Detail}}.</p>
<p><a href="{{.Home}}">Back to the dashboard</a></p>
`))

// notSignedIn answers a sign-in that has failed: with a page if a browser shows the answer.
func notSignedIn(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	h := w.Header()
	h.Set("Referrer-Policy", "no-referrer")
	html := func(line string) bool { return strings.Contains(line, "text/html") }
	if !slices.ContainsFunc(r.Header.Values("Accept"), html) {
		problem.Write(w, p)
		return
	}
	var page bytes.Buffer
	home := strings.Repeat("../", strings.Count(r.URL.Path, "/")-1)
	_ = failed.Execute(&page, struct{ Detail, Home string }{p.Detail, home}) // strings into memory
	if p.Challenge != "" {
		h.Set("WWW-Authenticate", p.Challenge)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(p.RetryAfter.Seconds())))
	}
	problem.NoStore(h)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	w.WriteHeader(p.Status)
	_, _ = w.Write(page.Bytes()) // the browser may be gone
}
