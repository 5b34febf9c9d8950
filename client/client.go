package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// readBuffer is how much is read from a connection at a time: a snapshot
// arrives in pieces of this size.
const readBuffer = 64 << 10

// Client follows, reads and writes the watches of one gateway.
//
// All methods may be called from any goroutine.
type Client struct {
	// Static after New.
	base      *url.URL
	options   Options
	transport http.RoundTripper

	refusedDigests atomic.Int64 // when the server refused digests last, in ns since 1970; 0: it has not
}

// undigestedFor is how long streams have no digests after a server has refused them. Then they ask again: another version may
// run by then.
const undigestedFor = 10 * time.Minute

// digests reports whether the server may know digests.
func (c *Client) digests() bool {
	at := c.refusedDigests.Load()
	return at == 0 || time.Since(time.Unix(0, at)) >= undigestedFor
}

// Options specify how requests are made.
type Options struct {
	// Token returns the token to send as Authorization: Bearer; "": none. It is called for each
	// request, from any goroutine, so it should cache a token as long as that is valid. nil: no
	// token is ever sent.
	Token func(ctx context.Context) (string, error)
	// Header is added to each request to the server, and to none that a redirect leads to
	// elsewhere. What a request sets itself is not replaced.
	Header http.Header
	// TLS configures connections. nil: the certificates of the system are trusted, and there
	// is no client certificate.
	TLS *tls.Config
	// Transport carries the requests, for tests, tracing or a proxy of one's own. It brings its own
	// TLS and time-outs. nil: one made by NewTransport.
	Transport http.RoundTripper
	// MaxUncommittedBytes is the most bytes of events that Watch holds until an ID covers them: those
	// of one transaction, or of one part of a snapshot. 0: 1 GiB.
	MaxUncommittedBytes int64
}

// New returns a client of the gateway at a URL such as http://127.0.0.1:8080, which
// may have a path. No connection is made yet.
func New(address string, o Options) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("server %q: want a URL such as http://127.0.0.1:8080", address)
	}
	if o.Transport != nil {
		if o.TLS != nil {
			return nil, errors.New("both TLS and Transport are set: configure TLS in the transport")
		}
		return &Client{base: u, options: o, transport: o.Transport}, nil
	}
	transport := NewTransport()
	transport.ResponseHeaderTimeout = AnswerWithin
	transport.ReadBufferSize = readBuffer
	if o.TLS != nil {
		transport.TLSClientConfig = o.TLS.Clone()
	}
	return &Client{base: u, options: o, transport: transport}, nil
}

// NewTransport returns a transport with the settings of http.DefaultTransport. A program may have
// wrapped that one, to trace requests for instance; then the settings are those of package net/http.
func NewTransport() *http.Transport {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		return t.Clone()
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// URL returns the URL of the gateway, without a password.
func (c *Client) URL() string { return c.base.Redacted() }

// Close closes the idle connections.
func (c *Client) Close() { (&http.Client{Transport: c.transport}).CloseIdleConnections() }

// RoundTrip adds the header of the options to a request to the server.
//
// A redirect is another request: what it leads to elsewhere must not get the header.
func (h header) RoundTrip(r *http.Request) (*http.Response, error) {
	if !h.of.isOrigin(r.URL) {
		return h.of.transport.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	for name, values := range h.of.options.Header {
		if _, set := r.Header[name]; !set {
			r.Header[name] = values
		}
	}
	return h.of.transport.RoundTrip(r)
}

// header is the transport of a server with a header of its own.
type header struct{ of *Client }

// isOrigin reports whether a URL has the origin of the server.
func (c *Client) isOrigin(u *url.URL) bool { return u.Scheme == c.base.Scheme && u.Host == c.base.Host }

// url returns the URL of a path, and escapes its parts.
func (c *Client) url(query url.Values, parts ...string) string {
	u := *c.base
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	for _, p := range parts {
		path += "/" + url.PathEscape(p)
	}
	u.RawPath = path
	u.Path, _ = url.PathUnescape(path)
	u.RawQuery = query.Encode()
	u.Fragment = ""
	return u.String()
}

// anyLength is the bound of an answer that has none.
const anyLength = math.MaxInt64

// get reads one JSON document of at most so many bytes. A refusal is a *Problem.
func (c *Client) get(ctx context.Context, into any, most int64, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	return c.do(request, into, most)
}

// do makes a request, and reads the JSON document of the answer, which has at most so many bytes. A
// refusal is a *Problem.
func (c *Client) do(request *http.Request, into any, most int64) error {
	token, header, err := c.credential(request.Context())
	if err != nil {
		return err
	}
	if header != "" {
		request.Header.Set("Authorization", header)
	}
	response, err := c.http().Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		return withoutToken(ReadProblem(response), token)
	}
	if err := json.NewDecoder(&bounded{response.Body, most, most}).Decode(into); err != nil {
		return fmt.Errorf("the answer of %s is not what a gateway answers: %w", c.base.Redacted(), err)
	}
	return nil
}

// bounded reads at most so many bytes. A longer answer is an error, before it is decoded.
type bounded struct {
	io.Reader
	most, left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("%w: it has more than %d bytes", ErrInvalid, b.most)
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		err = cutError{err}
	}
	return n, err
}

// cutError means that the connection has ended in the middle of an answer.
type cutError struct{ error }

// Unwrap returns why the connection has ended.
func (e cutError) Unwrap() error { return e.error }
