package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"github.com/watchtide/watchtide/client"
)

// maxBody is the most bytes that are read of a document.
const maxBody = 8 << 20

// request is one question to the gateway.
type request struct {
	method string // "": GET
	path   string // escaped
	query  url.Values
	header http.Header
	// anonymous requests have neither a token nor Options.Header, as a preflight of a browser.
	anonymous bool
	// fresh requests have a connection of their own, which may lead to another replica.
	fresh bool
}

// answer is the answer to a request.
//
// Owned by the caller.
type answer struct {
	*http.Response
	local, remote net.Addr
	sent, begun   time.Time // when there was a connection for the request, and when the header came
}

// Close ends the answer.
func (a *answer) Close() { a.Body.Close() }

// do sends a request. The answer ends with the context. Any goroutine may call it, once reach
// has returned.
func (e *Examination) do(ctx context.Context, r request) (*answer, error) {
	u := *e.base
	u.RawPath = strings.TrimSuffix(e.base.EscapedPath(), "/") + r.path
	u.Path, _ = url.PathUnescape(u.RawPath) // it was escaped
	u.RawQuery, u.Fragment = r.query.Encode(), ""
	a := &answer{sent: time.Now()}
	trace := &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) {
			a.local, a.remote, a.sent = c.Conn.LocalAddr(), c.Conn.RemoteAddr(), time.Now()
		},
	}
	method := r.method
	if method == "" {
		method = http.MethodGet
	}
	out, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	out.Header.Set("User-Agent", "watchtide-doctor")
	for name, values := range r.header {
		out.Header[name] = values
	}
	if err := e.authorize(ctx, r, out); err != nil {
		return nil, err
	}
	transport := e.shared
	if r.fresh {
		transport = e.transport()
		transport.DisableKeepAlives = true
	}
	if a.Response, err = transport.RoundTrip(out); err != nil {
		return nil, err
	}
	a.begun = time.Now()
	e.noteCookies(a.Response)
	return a, nil
}

// authorize adds the token and Options.Header, unless others could read them.
func (e *Examination) authorize(ctx context.Context, r request, out *http.Request) error {
	if r.anonymous || e.unverified {
		return nil
	}
	for name, values := range e.options.Header {
		if _, set := r.header[name]; !set {
			out.Header[name] = values
		}
	}
	if e.options.Token == nil {
		return nil
	}
	token, err := e.options.Token(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.token = token
	e.mu.Unlock()
	if token != "" {
		out.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// read asks for a document, and reads it.
func (e *Examination) read(ctx context.Context, r request, into any) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	a, err := e.do(ctx, r)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if a.StatusCode != http.StatusOK {
		return a, client.ReadProblem(a.Response)
	}
	text, err := io.ReadAll(io.LimitReader(a.Body, maxBody+1))
	switch {
	case err != nil:
		return a, err
	case len(text) > maxBody:
		return a, fmt.Errorf("the answer has more than %d bytes", maxBody)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return a, errNoGateway
	}
	return a, nil
}

// errNoGateway says that an answer is none of a gateway.
var errNoGateway = errors.New("the answer is not that of a gateway")

// because returns the reason of an error without the request, which is known.
func because(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("there was no answer within %v", answerWithin)
	}
	return shortened(err.Error())
}
