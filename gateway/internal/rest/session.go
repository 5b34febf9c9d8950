package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/problem"
)

// sessionAnswer is the answer to GET /v1/session: the principal of the request.
type sessionAnswer struct {
	Name      string    `json:"name"`
	Issuer    string    `json:"issuer"`
	Mechanism string    `json:"mechanism"`
	Tag       string    `json:"tag,omitempty"`    // of the principal, opaque
	Expires   time.Time `json:"expires,omitzero"` // of the credential
	Login     *login    `json:"login,omitempty"`
}

// login is the provider with which users can sign in.
type login struct {
	Name string `json:"name"`
}

// Session answers with the principal of the request.
func (a *API) Session(w http.ResponseWriter, r *http.Request) {
	if _, p := problem.Query(r); p != nil {
		problem.Write(w, p)
		return
	}
	id := authz.IdentityOf(r.Context())
	answer := sessionAnswer{Name: id.Name, Issuer: id.Issuer, Mechanism: id.Mechanism}
	if !id.IsAnonymous() {
		answer.Tag = a.Authenticator.Tag(id.Principal)
	}
	if !id.Expires.IsZero() {
		answer.Expires = id.Expires.UTC().Truncate(time.Millisecond)
	}
	if name := a.Authenticator.SignsIn(); name != "" {
		answer.Login = &login{name}
	}
	writeJSON(w, answer)
}

// NewSession answers a token with the cookie of a session. If the request has the cookie of
// another principal's session, that session ends, as with a logout: no tab of the browser goes
// on with the streams of a user who has left.
func (a *API) NewSession(w http.ResponseWriter, r *http.Request) {
	_, p := problem.Query(r)
	if p == nil {
		p = anyBody(r)
	}
	if p != nil {
		closeUnread(w, r)
		problem.Write(w, p)
		return
	}
	login, err := a.Authenticator.NewSession(r, authz.IdentityOf(r.Context()))
	if err != nil {
		a.refuse(w, r, access.Login, err)
		return
	}
	a.logout(r, login.Ended)
	a.Service.Lookup.Record(r.Context(), access.AuditEntry{Decision: access.Allowed, Action: access.Login, Status: http.StatusNoContent})
	http.SetCookie(w, login.Cookie)
	w.WriteHeader(http.StatusNoContent)
}

// EndSession ends the session whose cookie the request has, if any, with its streams on this
// replica, and removes the cookie. Pages of other sites cannot end the session of their
// visitor.
func (a *API) EndSession(w http.ResponseWriter, r *http.Request) {
	if _, p := problem.Query(r); p != nil {
		problem.Write(w, p)
		return
	}
	if !a.Authenticator.IsOfOurPage(r) {
		problem.Write(w, problem.New(http.StatusForbidden, "the request comes from a page of another site: want one of this gateway, or of an origin in http.allowed_origins"))
		return
	}
	forget, ended := a.Authenticator.EndSession(r)
	a.logout(r, ended)
	http.SetCookie(w, forget)
	w.WriteHeader(http.StatusNoContent)
}

// logout ends the streams of a session that has ended; nil: there was no session.
func (a *API) logout(r *http.Request, ended *credential.Identity) {
	if ended == nil {
		return
	}
	whose := authz.WithIdentity(r.Context(), ended)
	a.Service.Lookup.Record(whose, access.AuditEntry{Decision: access.Allowed, Action: access.Logout, Status: http.StatusNoContent})
	a.Streams.Authorizations.Revoke("session/" + ended.ID)
}

// refuse answers a request whose credential cannot be used for it.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, to access.Action, err error) {
	problem.Write(w, a.refused(r, to, err))
}

// refused records a refusal, and returns the answer.
func (a *API) refused(r *http.Request, to access.Action, err error) *problem.Problem {
	p := authz.Refused(err)
	e := access.AuditEntry{Decision: access.Denied, Action: to, Status: p.Status}
	var why *access.Refusal
	if errors.As(err, &why) {
		a.Streams.Metrics.CredentialRefused(why.Reason)
		e.Reason = string(why.Reason)
	}
	a.Service.Lookup.Record(r.Context(), e)
	return p
}

// writeJSON answers with a value that can always be encoded.
func writeJSON(w http.ResponseWriter, v any) {
	body, _ := json.Marshal(v)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}
