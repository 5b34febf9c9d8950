package jwt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Limits of requests to a provider.
const (
	fetchTimeout = 10 * time.Second // for all requests, including the bodies
	maxHeaders   = 64 << 10
)

// provider fetches the keys of an OpenID provider.
//
// Static after construction.
type provider struct {
	issuer string
	client *http.Client
}

func newProvider(i *Issuer) *provider {
	return &provider{issuer: i.URL, client: &http.Client{
		Transport:     limited{transport(i)},
		Timeout:       fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// transport makes a connection for each document, since they are minutes apart.
func transport(i *Issuer) http.RoundTripper {
	if i.Transport != nil {
		return i.Transport
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if i.TLS != nil {
		config = i.TLS.Clone()
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: fetchTimeout}).DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    fetchTimeout,
		MaxResponseHeaderBytes: maxHeaders,
		DisableKeepAlives:      true,
		ForceAttemptHTTP2:      true,
	}
}

// limited is a transport that limits the size of bodies.
type limited struct{ next http.RoundTripper }

// RoundTrip returns the answer to a request, with a body of limited size.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxDocument)
	}
	return answer, err
}

// fetch fetches the metadata of the provider, and then its keys.
func (p *provider) fetch(ctx context.Context) (*fetched, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), fetchTimeout)
	defer cancel()
	discovered, err := oidc.NewProvider(ctx, p.issuer)
	if err != nil {
		return nil, fmt.Errorf("%s does not say where its keys are: %w", p.issuer, plain(err))
	}
	var document struct {
		KeysURL string `json:"jwks_uri"`
		endpoints
	}
	if err := discovered.Claims(&document); err != nil {
		return nil, fmt.Errorf("%s does not say where its keys are: the document has no jwks_uri", p.issuer)
	}
	data, err := p.document(ctx, document.KeysURL)
	if err != nil {
		return nil, fmt.Errorf("the keys of %s: %w", p.issuer, err)
	}
	set, err := parseKeys(data)
	if err != nil {
		return nil, fmt.Errorf("the keys of %s: %w", p.issuer, err)
	}
	return &fetched{set, document.endpoints, time.Now()}, nil
}

func (p *provider) document(ctx context.Context, at string) ([]byte, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("jwks_uri %.200q is not a URL", at)
	}
	if err := secure(u); err != nil {
		return nil, fmt.Errorf("jwks_uri %.200q: %w", at, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Cache-Control", "no-cache")
	answer, err := p.client.Do(request)
	if err != nil {
		return nil, plain(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%.200q answers %s%s", at, answer.Status, redirected(answer.StatusCode))
	}
	data, err := io.ReadAll(answer.Body)
	return data, plain(err)
}

func redirected(status int) string {
	if status >= 300 && status < 400 {
		return ": redirects are not followed"
	}
	return ""
}

// plain returns the error with a text of limited length, since go-oidc quotes whole documents.
func plain(err error) error {
	if err == nil {
		return nil
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return fmt.Errorf("the document has more than %d bytes", large.Limit)
	}
	const most = 300
	if text := err.Error(); len(text) > most {
		return fmt.Errorf("%.*q…", most, text)
	}
	return err
}
