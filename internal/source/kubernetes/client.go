package kubernetes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/stream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// silence is how long the server may keep a request waiting, or pause within an
// answer, except for a watch.
const silence = time.Minute

// client makes requests to one API server, for one Watch call.
type client struct {
	// Static after construction.
	config *Config
	base   *url.URL // root of the server's paths
	ca     string   // the authority that signs the server's certificate: a file name, or its content
	sent   *credentials
	hold   func(bytes int64) // see stream.SinkExtension
	proxy  func(*http.Request) (*url.URL, error)
	open   *connections

	// Atomic: written by requests. The last answer came over HTTP/2.
	http2 atomic.Bool

	mu     sync.Mutex // guards what follows
	loaded *rest.Config
	plugin *plugin // nil: the credentials are those of loaded
	login  *login  // of the last request; nil: the next one makes it
}

func newClient(c *Config, hold func(bytes int64)) (*client, error) {
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(loaded)
	if err != nil {
		return nil, fmt.Errorf("address %q: want a URL like https://127.0.0.1:6443: %w", loaded.Host, err)
	}
	plugin, err := pluginOf(loaded)
	if err != nil {
		return nil, err
	}
	made := &client{
		config: c, base: base, ca: authority(loaded), sent: new(credentials), hold: hold, proxy: http.ProxyFromEnvironment,
		open: newConnections(loaded, c.StallAfter), loaded: loaded, plugin: plugin,
	}
	if loaded.Proxy != nil {
		made.proxy = loaded.Proxy
	}
	return made, nil
}

// close closes all connections.
func (c *client) close() { c.open.close() }

// refuseRedirect refuses all: the transport would send our credentials to wherever
// the answer points.
func refuseRedirect(to *http.Request, _ []*http.Request) error {
	return fmt.Errorf("the answer is a redirect to %.200s: want the address of the API server itself", to.URL.Redacted())
}

// authority returns the required signer of the server's certificate.
func authority(c *rest.Config) string {
	if len(c.CAData) > 0 {
		return string(c.CAData)
	}
	return c.CAFile
}

// collection is the path of the followed objects.
func (c *client) collection() string {
	path := groupPath(c.config.Group, c.config.Version)
	if c.config.Namespace != "" {
		path += "/namespaces/" + c.config.Namespace
	}
	return path + "/" + c.config.Resource
}

func groupPath(group, version string) string {
	if group == "" {
		return "/api/" + version
	}
	return "/apis/" + group + "/" + version
}

// query returns parameters from names and values, with the selectors; empty ones
// are left out.
func (c *client) query(pairs ...string) url.Values {
	pairs = append(pairs, "labelSelector", c.config.LabelSelector, "fieldSelector", c.config.FieldSelector)
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// get decodes the answer to one request.
func (c *client) get(ctx context.Context, path string, query url.Values, into any) error {
	return c.read(ctx, path, query, func(body *ration) error { return json.NewDecoder(body).Decode(into) })
}

// read makes a request, and has decode read its answer.
func (c *client) read(ctx context.Context, path string, query url.Values, decode func(body *ration) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	timer := time.AfterFunc(silence, func() { end(errNoAnswer) })
	defer timer.Stop()
	body, err := c.request(ctx, path, query)
	if err != nil {
		return err
	}
	defer body.Close()
	r := &ration{ctx: ctx, body: &attentive{body, timer}, most: c.config.maxObject, hold: c.hold}
	defer func() { c.hold(-r.take()) }()
	if err := decode(r); err != nil {
		return c.undecodable(ctx, path, err)
	}
	_, _ = io.CopyN(io.Discard, r, 4<<10) // a connection whose answer was read to its end can be used again
	return nil
}

// undecodable returns why an answer could not be decoded.
func (c *client) undecodable(ctx context.Context, path string, err error) error {
	switch {
	case errors.Is(err, stream.ErrInvalid):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return cmp.Or(context.Cause(ctx), fmt.Errorf("the answer to %s ends too early: %w", path, io.ErrUnexpectedEOF))
	case isJSON(err):
		return invalid("the answer to %s is not what Kubernetes answers: %v", path, err)
	}
	return because(ctx, err)
}

// isJSON reports whether an error is about what was read, not about reading it.
func isJSON(err error) bool {
	return errors.As(err, new(*json.SyntaxError)) || errors.As(err, new(*json.UnmarshalTypeError))
}

// request makes a request and returns the body of a successful answer.
func (c *client) request(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	return c.send(ctx, http.MethodGet, path, query, nil)
}

// send makes a request with a body of JSON, if it is not nil, and returns the body of a successful answer.
// A request that is refused for its credential is made once more, with the present one.
func (c *client) send(ctx context.Context, method, path string, query url.Values, body []byte) (io.ReadCloser, error) {
	return c.sendWith(ctx, method, path, query, nil, body)
}

// sendWith is send with more headers.
func (c *client) sendWith(ctx context.Context, method, path string, query url.Values, more http.Header, body []byte) (io.ReadCloser, error) {
	as, err := c.enter(ctx)
	if err != nil {
		return nil, notSent(err)
	}
	answer, refused := c.sendAs(ctx, as, method, path, query, more, body)
	if !apierrors.IsUnauthorized(refused) {
		return answer, refused
	}
	if as, err = c.renew(ctx, as); err != nil {
		return nil, fmt.Errorf("%w: %w", refused, notSent(err))
	}
	return c.sendAs(ctx, as, method, path, query, more, body)
}

func (c *client) sendAs(ctx context.Context, as *login, method, path string, query url.Values, more http.Header, body []byte) (io.ReadCloser, error) {
	target := *c.base
	target.Path = strings.TrimSuffix(target.Path, "/") + path
	target.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, more)
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := as.http.Do(request)
	if err != nil {
		return nil, because(ctx, err)
	}
	c.http2.Store(answer.ProtoMajor >= 2)
	if answer.StatusCode/100 != 2 || method == http.MethodGet && answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		return nil, refusal(answer)
	}
	return answer.Body, nil
}

// attentive postpones a timer while bytes arrive.
type attentive struct {
	body  io.Reader
	timer *time.Timer
}

// Read implements io.Reader.
func (a *attentive) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	a.timer.Reset(silence)
	return n, err
}
