package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

var (
	// ErrUnauthenticated matches, with errors.Is, a *Problem with the status 401: the server
	// wants a token, or another one.
	ErrUnauthenticated = errors.New("the server wants a valid token")
	// ErrForbidden matches, with errors.Is, a *Problem with the status 403: the server accepts
	// the token, but does not allow the request.
	ErrForbidden = errors.New("the server does not allow this")
)

// Is reports whether the problem is ErrUnauthenticated, ErrForbidden or ErrConflict.
func (p *Problem) Is(target error) bool {
	switch target {
	case ErrUnauthenticated:
		return p.Status == http.StatusUnauthorized
	case ErrForbidden:
		return p.Status == http.StatusForbidden
	case ErrConflict:
		return p.Status == http.StatusPreconditionFailed
	}
	return false
}

// credential returns the token for a request, and the header that carries it; both are empty if
// there is none.
func (c *Client) credential(ctx context.Context) (token, header string, err error) {
	if c.options.Token == nil {
		return "", "", nil
	}
	token, err = c.options.Token(ctx)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("no token: %w", err)
	case token == "":
		return "", "", nil
	case !CanBeToken(token):
		return "", "", errors.New("no token: it has characters that cannot be sent: want one line of printable ASCII without spaces")
	}
	return token, "Bearer " + token, nil
}

// CanBeToken reports whether a text can be sent as a token: printable ASCII without
// spaces.
func CanBeToken(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return text != ""
}

// http returns what makes one request. With a credential, it follows redirects only within
// the origin of the server, so that nobody else gets the credential.
func (c *Client) http() *http.Client {
	h := &http.Client{Transport: c.transport}
	if len(c.options.Header) > 0 {
		h.Transport = header{c}
	}
	if c.options.Token != nil || c.hasCertificate() {
		h.CheckRedirect = c.checkRedirect
	}
	return h
}

// hasCertificate reports whether connections may have a client certificate.
func (c *Client) hasCertificate() bool {
	t := c.options.TLS
	return t != nil && (len(t.Certificates) > 0 || t.GetClientCertificate != nil)
}

// maxRedirects is the limit of package net/http.
const maxRedirects = 10

func (c *Client) checkRedirect(to *http.Request, via []*http.Request) error {
	if !c.isOrigin(to.URL) {
		return fmt.Errorf("%w: the answer is a redirect to %s://%s, which must not get the credential: want the URL of the gateway itself", ErrInvalid, to.URL.Scheme, to.URL.Host)
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("%w: more than %d redirects", ErrInvalid, maxRedirects)
	}
	return nil
}

// withoutToken hides the token in an error, in case the server repeats it.
func withoutToken(err error, token string) error {
	var p *Problem
	if token == "" || !errors.As(err, &p) {
		return err
	}
	for _, text := range []*string{&p.Title, &p.Detail, &p.Watch, &p.Parameter} {
		*text = strings.ReplaceAll(*text, token, "[hidden]")
	}
	return err
}
