package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Options say what is examined.
type Options struct {
	// URL is that of the gateway, as browsers use it. It may have a path.
	URL string
	// Token returns the token to send, as client.Options.Token does; nil: none is sent.
	Token func(context.Context) (string, error)
	// Origin is that of the pages whose access is examined; "": there are none.
	Origin string
	// Watch is the one whose streams are used; "": the first one that is in sync.
	Watch string
	// Wait is how long silence is observed. 0: two and a half heartbeats, and at least
	// MinWait.
	Wait time.Duration
	// Header is added to each request that may have the token. What a request sets itself is not
	// replaced.
	Header http.Header
	// TLS configures connections, as client.Options.TLS does.
	TLS *tls.Config
	// Dial opens connections; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Found is called with each finding, as soon as there is one.
	Found func(Finding)
	// Doing is called with what is examined next, and how long that takes at most.
	Doing func(text string, atMost time.Duration)
}

const (
	// MinWait is the least default of Options.Wait: longer than a long poll waits.
	MinWait = 35 * time.Second
	// MaxWait is the longest possible wait: a long poll waits no longer.
	MaxWait = 5 * time.Minute
	// answerWithin is how long an answer may take that the gateway gives at once.
	answerWithin = 10 * time.Second
)

// Examination examines the way to a gateway, once. One goroutine calls its methods, except
// where another one may, as the comment says.
type Examination struct {
	// Static after parse.
	options Options
	base    *url.URL
	origin  *url.URL // nil: none

	// Static after reach.
	unverified bool // the certificate is wrong: no token is sent
	shared     *http.Transport
	list       list
	watch      watch

	// Owned by the goroutine of Run.
	clock clock

	mu      sync.Mutex
	token   string              // guarded by mu: the newest one, which must not be printed
	cookies map[string]cookieOf // guarded by mu: those that were set, by name
}

// New returns an examination. An error says which option is wrong.
func New(o Options) (*Examination, error) {
	if o.TLS == nil {
		o.TLS = &tls.Config{}
	}
	e := &Examination{options: o, cookies: map[string]cookieOf{}}
	return e, e.parse()
}

// Run examines everything, and reports each finding. An error means that the context has ended
// before.
func (e *Examination) Run(ctx context.Context) error {
	e.shared = e.transport()
	defer func() { e.shared.CloseIdleConnections() }()
	if !e.reach(ctx) {
		return context.Cause(ctx)
	}
	for _, step := range []func(context.Context){e.checkHTTP, e.checkAddress, e.checkClock, e.checkCORS, e.checkReplicas, e.checkResume, e.checkStreams, e.checkCookies} {
		if ctx.Err() != nil {
			break
		}
		step(ctx)
	}
	return context.Cause(ctx)
}

func (e *Examination) parse() (err error) {
	e.base, err = url.Parse(e.options.URL)
	if err != nil || (e.base.Scheme != "http" && e.base.Scheme != "https") || e.base.Hostname() == "" {
		return fmt.Errorf("URL %q: want one such as https://events.example.com", shortened(e.options.URL))
	}
	if e.base.User != nil || e.base.RawQuery != "" {
		return fmt.Errorf("URL %q: want one without a password and without a query", e.base.Redacted())
	}
	if o := e.options.Origin; o != "" {
		e.origin, err = url.Parse(o)
		if err != nil || e.origin.Host == "" || o != e.origin.Scheme+"://"+e.origin.Host {
			return fmt.Errorf("origin %q: want one as a browser sends it, such as https://app.example.com, without a path", shortened(o))
		}
	}
	if w := e.options.Wait; w < 0 || w > MaxWait {
		return fmt.Errorf("wait %v: want at most %v", w, MaxWait)
	}
	return nil
}

// report reports a finding, without what must not be printed. No examination is continued
// after the end of its context, so that nothing is reported that is due to the end alone.
func (e *Examination) report(ctx context.Context, f Finding) {
	if ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	token := e.token
	e.mu.Unlock()
	f.hide(token, "(token)")
	for name, values := range e.options.Header {
		for _, value := range values {
			if name != "User-Agent" && len(value) >= secretBytes {
				f.hide(value, "("+name+")")
			}
		}
	}
	e.options.Found(f)
}

// secretBytes is from which length on the value of a header may be a secret. A shorter one, such
// as 1, would be found in other words.
const secretBytes = 8

func (e *Examination) ok(ctx context.Context, c Check, format string, args ...any) {
	e.report(ctx, Finding{Check: c, Result: OK, Found: fmt.Sprintf(format, args...)})
}

func (e *Examination) unknown(ctx context.Context, c Check, format string, args ...any) {
	e.report(ctx, Finding{Check: c, Result: Unknown, Found: fmt.Sprintf(format, args...)})
}

// problem reports a problem; mend says what to do.
func (e *Examination) problem(ctx context.Context, c Check, mend, format string, args ...any) {
	e.report(ctx, Finding{Check: c, Result: Problem, Found: fmt.Sprintf(format, args...), Mend: mend})
}

func (e *Examination) doing(atMost time.Duration, format string, args ...any) {
	if e.options.Doing != nil {
		e.options.Doing(fmt.Sprintf(format, args...), atMost)
	}
}

// maxHeader is the most bytes of the header of an answer.
const maxHeader = 64 << 10

// transport returns a transport without connections.
func (e *Examination) transport() *http.Transport {
	secured := e.options.TLS.Clone()
	secured.InsecureSkipVerify = e.unverified
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: e.options.Dial, TLSClientConfig: secured,
		ForceAttemptHTTP2: true, IdleConnTimeout: answerWithin, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
}

// rounded makes a time readable.
func rounded(d time.Duration) time.Duration {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	case d < time.Second:
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
