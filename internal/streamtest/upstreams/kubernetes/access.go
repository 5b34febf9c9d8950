package main

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// access decides the permissions of users. A client is identified by its bearer
// token: the file tokens in the data directory has a line "<token> <user>" for
// each, and is read at each request, so that tests can revoke a token.
//
//   - admin may do everything;
//   - reader may list and watch everything but this server's own objects;
//   - deputy may impersonate others, and nothing else;
//   - all others may do nothing.
//
// Whoever is impersonated may do everything with custom resources if the group
// writers is among the groups, and nothing otherwise.
//
// Without the file, "admin" is the token of admin.
type access struct {
	tokens string
}

// known is the group of the users in the file.
const known = "known"

// guard replaces the check against the cluster. The server itself has a token
// too, by which it calls itself.
func (a access) guard(c *genericapiserver.Config) {
	inner, allowed := c.Authentication.Authenticator, c.Authorization.Authorizer
	c.Authentication.Authenticator = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if name := a.user(r); name != "" {
			return &authenticator.Response{User: &user.DefaultInfo{Name: name, Groups: []string{known}}}, true, nil
		}
		return inner.AuthenticateRequest(r)
	})
	c.Authorization.Authorizer = rules{allowed}
}

// user returns the name behind a request's token; "": not one of ours.
func (a access) user(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	lines, err := os.ReadFile(a.tokens)
	if os.IsNotExist(err) {
		lines = []byte("admin admin")
	}
	for line := range strings.Lines(string(lines)) {
		if one, name, _ := strings.Cut(strings.TrimSpace(line), " "); one == token {
			return name
		}
	}
	return ""
}

// rules are the authorizer of those users; inner decides for the server itself.
type rules struct {
	authorizer.Authorizer
}

// Authorize implements authorizer.Authorizer.
func (r rules) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	who, allowed := a.GetUser(), false
	switch {
	case slices.Contains(who.GetGroups(), known):
		allowed = may(who.GetName(), a)
	case strings.HasPrefix(who.GetName(), "system:"):
		return r.Authorizer.Authorize(ctx, a)
	default: // impersonated
		allowed = a.IsResourceRequest() && a.GetAPIGroup() != "apiextensions.k8s.io" && slices.Contains(who.GetGroups(), "writers")
	}
	if allowed {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionDeny, "", nil
}

func may(name string, a authorizer.Attributes) bool {
	reads := a.GetVerb() == "list" || a.GetVerb() == "watch"
	switch name {
	case "admin":
		return true
	case "deputy":
		return a.GetVerb() == "impersonate"
	case "reader":
		return reads && a.GetAPIGroup() != "apiextensions.k8s.io" || !a.IsResourceRequest()
	}
	return false
}
