package consul

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

const (
	// maxHeaderBytes is the size of the largest header of an answer.
	maxHeaderBytes = 64 << 10
	// maxRefusalBytes is how much of the text of a refusal is read.
	maxRefusalBytes = 512
	// answerSlack is how much later than it has to a server may answer, and how long it may pause
	// within an answer.
	answerSlack = 10 * time.Second
	// askTimeout is how long a server may take for an answer that needs no wait.
	askTimeout = 30 * time.Second
	// longestRetryAfter bounds the wait that a server asks for.
	longestRetryAfter = time.Minute
	// itemCost is what an item takes besides the bytes of the answer.
	itemCost = 256
)

// api makes requests to the HTTP API, for one Watch call.
//
// Safe for concurrent use.
type api struct {
	// Static after construction.
	config *Config
	query  query
	sink   stream.Sink // of which only Charge and MaxBytes are called
	http   http.Client
	proxy  string // see adapter.Through
}

// newAPI returns an api. lost is called when a connection was lost.
func newAPI(c *Config, sink stream.Sink, lost func(error)) *api {
	dial := (&net.Dialer{Timeout: askTimeout}).DialContext
	if c.network != nil {
		dial = func(ctx context.Context, _, address string) (net.Conn, error) { return c.network(ctx, address) }
	}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: c.TLS, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &losable{Conn: conn, lost: lost}, nil
		},
		TLSHandshakeTimeout:    askTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	if c.network != nil {
		t.Proxy = nil
	}
	a := &api{config: c, query: c.query(), sink: sink, http: http.Client{Transport: t, CheckRedirect: refuseRedirect}}
	if t.Proxy != nil {
		a.proxy = adapter.Through(t.Proxy(&http.Request{URL: a.url("", nil)}))
	}
	return a
}

func (a *api) close() { a.http.CloseIdleConnections() }

// refuseRedirect refuses all: the token would be sent to wherever the answer points.
func refuseRedirect(to *http.Request, _ []*http.Request) error {
	return fmt.Errorf("the answer is a redirect to %.200s: want the address of Consul itself, and names without empty parts", to.URL.Redacted())
}

func (a *api) url(path string, params url.Values) *url.URL {
	u := &url.URL{Scheme: "http", Host: a.config.HTTPAddress, Path: path, RawQuery: params.Encode()}
	if a.config.TLS != nil {
		u.Scheme = "https"
	}
	return u
}

// mode is what is asked of a query.
type mode struct {
	index      uint64 // answer once it has another one; 0: at once
	consistent bool   // have the leader answer, once it has made sure that it is the leader
}

// answer is what a query was answered.
type answer struct {
	items    []item
	bytes    int64         // charged
	index    uint64        // by which the next query waits
	complete uint64        // the index up to which it has everything
	filtered bool          // the token may not read all of it
	why      string        // why it need not be the present state; empty: it is
	took     time.Duration // to read it
}

// refusal is an answer that has no content.
type refusal struct {
	status int
	text   string
	after  time.Duration // when to ask again; 0: it does not say
}

// Error returns the status and the text.
func (r *refusal) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s: %s", r.status, http.StatusText(r.status), r.text))
}

// ask asks the query, and reads its answer. The items of the answer are charged until release.
func (a *api) ask(ctx context.Context, m mode, token string) (*answer, error) {
	params := url.Values{}
	for name, values := range a.query.params {
		params[name] = values
	}
	limit := askTimeout
	if m.index > 0 {
		// Queries of many watches do not end at the same time.
		wait := a.config.ListInterval - rand.N(a.config.ListInterval/10)
		params.Set("index", strconv.FormatUint(m.index, 10))
		params.Set("wait", strconv.FormatInt(max(wait.Milliseconds(), 1), 10)+"ms")
		limit = wait + wait/16 + answerSlack // Consul adds up to a sixteenth
	}
	switch {
	case m.consistent:
		params.Set(ConsistencyConsistent, "")
	case a.config.Consistency != "":
		params.Set(a.config.Consistency, "")
	}
	floor, err := a.floor(ctx, m, token)
	if err != nil {
		return nil, err
	}
	out := &answer{}
	err = a.get(ctx, a.query.path, params, token, limit, func(r *http.Response, body io.Reader) error {
		began := time.Now()
		defer func() { out.took = time.Since(began) }()
		return a.read(r, body, out)
	})
	if err != nil {
		a.release(out)
		return nil, err
	}
	out.complete = max(floor, out.index)
	return out, nil
}

// floor returns the index of the whole store, before a list from the leader. That list has everything up
// to there, while its own index is only that of what is in it.
func (a *api) floor(ctx context.Context, m mode, token string) (index uint64, err error) {
	if a.query.floor == "" || !m.consistent {
		return 0, nil
	}
	params := maps.Clone(a.query.params) // above all the datacenter, whose store has an index of its own
	params.Del(recurse)
	params.Set(ConsistencyConsistent, "")
	err = a.get(ctx, a.query.floor, params, token, askTimeout, func(r *http.Response, _ io.Reader) error {
		index = indexOf(r)
		return nil
	})
	return index, err
}

// leader asks for the address of the leader of the collection's datacenter; "": its servers have none.
func (a *api) leader(ctx context.Context, token string) (leader string, err error) {
	params := url.Values{}
	if a.config.Datacenter != "" {
		params.Set("dc", a.config.Datacenter)
	}
	err = a.get(ctx, "/v1/status/leader", params, token, a.config.ProbeInterval, func(_ *http.Response, body io.Reader) error {
		return json.NewDecoder(io.LimitReader(body, maxRefusalBytes)).Decode(&leader)
	})
	return leader, err
}

// cluster asks for the id of the cluster: see connection.cluster. "": it has none.
func (a *api) cluster(ctx context.Context, token string) (string, error) {
	var roots struct{ TrustDomain string }
	err := a.get(ctx, "/v1/connect/ca/roots", nil, token, askTimeout, func(_ *http.Response, body io.Reader) error {
		return json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(&roots)
	})
	var no *refusal
	if errors.As(err, &no) && !no.passing() {
		return "", nil
	}
	return roots.TrustDomain, err
}

// get makes a request and has its answer read. limit is how long the header of the answer may take.
func (a *api) get(ctx context.Context, path string, params url.Values, token string, limit time.Duration, read func(*http.Response, io.Reader) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	timer := time.AfterFunc(limit, func() { end(fmt.Errorf("%w: no answer within %v", stream.ErrStalled, limit)) })
	defer timer.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url(path, params).String(), nil)
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set(tokenHeader, token)
	}
	request.Header.Set("User-Agent", "watchtide-gateway")
	r, err := a.http.Do(request)
	if err != nil {
		return because(ctx, err)
	}
	defer r.Body.Close()
	body := &attentive{body: r.Body, timer: timer}
	if r.StatusCode != http.StatusOK && r.StatusCode != http.StatusNotFound || r.StatusCode == http.StatusNotFound && r.Header.Get(indexHeader) == "" {
		return because(ctx, refused(r, body))
	}
	return because(ctx, read(r, body))
}

// losable is a connection whose loss is noticed. net/http would go on with another one, without a word. The
// server may be another one by then, whose index is lower, and a blocking query would wait for the old one.
type losable struct {
	net.Conn
	lost   func(error)
	closed atomic.Bool // by this side
}

// Close implements net.Conn.
func (c *losable) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// Read implements io.Reader.
func (c *losable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.note(err)
	return n, err
}

// Write implements io.Writer.
func (c *losable) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.note(err)
	return n, err
}

func (c *losable) note(err error) {
	if err != nil && !c.closed.Load() && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.lost(fmt.Errorf("the connection was lost: %w", err))
	}
}

// because returns why a context has ended, if it has, in place of an error that follows from that.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err // without the URL, which is long
	}
	return err
}

func refused(r *http.Response, body io.Reader) error {
	text, _ := io.ReadAll(io.LimitReader(body, maxRefusalBytes))
	out := &refusal{status: r.StatusCode, text: strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "�")), " ")}
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && seconds > 0 {
		out.after = min(time.Duration(seconds)*time.Second, longestRetryAfter)
	}
	return out
}

// passing reports whether the servers cannot answer right now.
func (r *refusal) passing() bool {
	return r.status == http.StatusTooManyRequests || r.status >= 500 &&
		(strings.Contains(r.text, "leader") || strings.Contains(r.text, "not yet initialized") || strings.Contains(r.text, "No known Consul servers") || strings.Contains(r.text, "rpc error"))
}

// attentive postpones a timer while bytes arrive.
type attentive struct {
	body  io.Reader
	timer *time.Timer
}

// Read implements io.Reader.
func (a *attentive) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	a.timer.Reset(answerSlack)
	return n, err
}
