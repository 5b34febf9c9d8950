package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// readBuffer is how much is read from a connection at a time: a snapshot
// arrives in pieces of this size.
const readBuffer = 64 << 10

// Server is a gateway, as seen from outside.
//
// Static after NewServer; all methods may be called from any goroutine.
type Server struct {
	base      *url.URL
	options   ServerOptions
	transport *http.Transport
}

// ServerOptions specify how requests are made.
type ServerOptions struct {
	// Token returns the token to send as Authorization: Bearer; "": none. It is called for each
	// request, from any goroutine, so it should cache a token as long as that is valid. nil: no
	// token is ever sent.
	Token func(ctx context.Context) (string, error)
}

// NewServer returns the gateway at a URL such as http://127.0.0.1:8080, which
// may have a path. No connection is made yet.
func NewServer(address string, o ServerOptions) (*Server, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("server %q: want a URL such as http://127.0.0.1:8080", address)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = AnswerWithin
	transport.ReadBufferSize = readBuffer
	return &Server{base: u, options: o, transport: transport}, nil
}

// Close closes the idle connections.
func (s *Server) Close() { s.transport.CloseIdleConnections() }

// url returns the URL of a path, and escapes its parts.
func (s *Server) url(query url.Values, parts ...string) string {
	u := *s.base
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

// get reads one JSON document. A refusal is a *Problem.
func (s *Server) get(ctx context.Context, into any, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	token, header, err := s.credential(ctx)
	if err != nil {
		return err
	}
	if header != "" {
		request.Header.Set("Authorization", header)
	}
	response, err := s.client().Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return withoutToken(ReadProblem(response), token)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("the answer of %s is not what a gateway answers: %w", s.base.Redacted(), err)
	}
	return nil
}
