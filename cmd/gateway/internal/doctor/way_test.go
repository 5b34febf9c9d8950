package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/watchtide/watchtide/gateway"
	streams "github.com/watchtide/watchtide/stream"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
)

func TestMain(m *testing.M) {
	// Two processors that run timers of one bubble at the same time crash the race detector
	// (golang/go#78156).
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}

const (
	site    = "events.example.com"
	siteURL = "https://" + site
	pages   = "https://app.example.com"
)

// way is what lies between the doctor and a gateway: a proxy with TLS and HTTP/2 in front of
// some replicas. It is well until a test changes it. All of it runs in a synctest bubble.
type way struct {
	t        *testing.T
	network  *network
	replicas []replica
	config   gateway.Config
	proxy    *httputil.ReverseProxy
	inFront  func(http.Handler) http.Handler // what the proxy does to answers
	tls      *tls.Config                     // of the proxy; nil: it has none
	roots    *x509.CertPool
	options  Options
	turn     atomic.Uint64 // the next replica
	doing    []string
}

// replica is the copy of the watch that one replica has.
type replica struct {
	epoch    string
	revision uint64
	down     bool
}

func newWay(t *testing.T) *way {
	t.Helper()
	w := &way{t: t, network: newNetwork(), replicas: []replica{{epoch: "e1", revision: 2}}, roots: x509.NewCertPool()}
	w.inFront = func(next http.Handler) http.Handler { return next }
	w.config = gateway.Config{
		HTTPSettings:   gateway.HTTPSettings{Hosts: []string{site}, AllowedOrigins: []string{pages}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		StreamSettings: gateway.StreamSettings{Pump: gateway.PumpGoroutines, DrainDelay: -1, Drain: -1}, Logger: slog.New(slog.DiscardHandler),
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true) // over HTTP/1.1 the gateway would watch file descriptors, which a bubble cannot
	w.proxy = &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { w.pass(r) },
		Transport: &http.Transport{DialContext: w.network.from("10.0.0.1"), DisableCompression: true, DisableKeepAlives: true, Protocols: &protocols},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	w.tls = &tls.Config{Certificates: []tls.Certificate{w.certificate(certified{})}}
	w.options = Options{URL: siteURL, Origin: pages}
	return w
}

// pass passes on a request to the next replica.
func (w *way) pass(r *httputil.ProxyRequest) {
	r.SetURL(&url.URL{Scheme: "http", Host: replicaName(int(w.turn.Add(1)-1) % len(w.replicas))})
	r.Out.Host = r.In.Host
	r.SetXForwarded()
}

func replicaName(i int) string { return fmt.Sprintf("replica%d:80", i) }

// certified is what is special about a certificate.
type certified struct {
	name     string        // "": site
	lasts    time.Duration // 0: a year
	unknown  bool          // nobody knows the authority
	between  bool          // there is another authority in between, which is not sent
	selfMade bool
}

// certificate makes a certificate, and lets the doctor know its authority.
func (w *way) certificate(c certified) tls.Certificate {
	w.t.Helper()
	name, lasts := c.name, c.lasts
	if name == "" {
		name = site
	}
	if lasts == 0 {
		lasts = 365 * 24 * time.Hour
	}
	root, rootKey := w.sign("Example Root", nil, nil, nil, time.Hour*24*3650)
	if !c.unknown {
		w.roots.AddCert(root)
	}
	issuer, key := root, rootKey
	if c.between {
		issuer, key = w.sign("Example Between", nil, root, rootKey, time.Hour*24*3650)
	}
	if c.selfMade {
		issuer, key = nil, nil
	}
	leaf, leafKey := w.sign("server", []string{name}, issuer, key, lasts)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: leafKey}
}

// sign makes one certificate. names are those of a server; nil: it is an authority.
func (w *way) sign(common string, names []string, by *x509.Certificate, with *ecdsa.PrivateKey, lasts time.Duration) (*x509.Certificate, *ecdsa.PrivateKey) {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: common}, DNSNames: names,
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(lasts), BasicConstraintsValid: true, IsCA: names == nil,
	}
	if template.IsCA {
		template.KeyUsage = x509.KeyUsageCertSign
	}
	if by == nil {
		by, with = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), with)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := x509.ParseCertificate(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	return c, key
}

// serve runs the replicas and the proxy until the end of the test.
func (w *way) serve() {
	w.t.Helper()
	for i, r := range w.replicas {
		if !r.down {
			w.serveReplica(i, r)
		}
	}
	w.serveHTTP(w.inFront(w.proxy))
}

// serveHTTP serves a handler in place of the proxy.
func (w *way) serveHTTP(h http.Handler) {
	l := w.network.listen(site+":443", "192.0.2.1:443")
	server := &http.Server{Handler: h, TLSConfig: w.tls, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	if w.tls == nil {
		l = w.network.listen(site+":80", "192.0.2.1:80")
	}
	go func() {
		defer close(done)
		if w.tls == nil {
			_ = server.Serve(l)
			return
		}
		_ = server.ServeTLS(l, "", "")
	}()
	w.t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

func (w *way) serveReplica(i int, r replica) {
	w.t.Helper()
	registry := streamwatch.NewRegistry()
	w.t.Cleanup(registry.Close)
	source := streams.SourceFunc(func(ctx context.Context, _ streams.Resume, sink streams.Sink) error {
		if err := sink.Reset(r.epoch); err != nil {
			return err
		}
		if err := sink.Upsert(streams.Resource{Key: "a", Revision: 1, Value: []byte("1")}); err != nil {
			return err
		}
		if err := sink.Commit(r.revision); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	watch, err := registry.Add(streamwatch.Config{Name: "orders", SourceName: "memory", Source: source, Logger: w.config.Logger})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := watch.Prime(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	c := w.config
	c.Registry, c.Instance = registry, fmt.Sprintf("replica%d", i)
	g, err := gateway.New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	l := w.network.listen(replicaName(i), "10.0.1.1:80")
	go func() { served <- g.Serve(ctx, gateway.Listeners{HTTP: l}) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			w.t.Errorf("Serve: %v", err)
		}
	})
}

// examine runs the doctor, and returns all findings.
func (w *way) examine(ctx context.Context) (all []Finding, err error) {
	w.t.Helper()
	w.options.TLS, w.options.Dial = &tls.Config{RootCAs: w.roots}, w.network.from("198.51.100.7")
	w.options.Found = func(f Finding) { all = append(all, f) }
	w.options.Doing = func(text string, _ time.Duration) { w.doing = append(w.doing, text) }
	e, err := New(w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	err = e.Run(ctx)
	return all, err
}

// wantProblem examines, and wants one problem alone, which has a text. "": none.
func (w *way) wantProblem(check Check, text string) []Finding {
	w.t.Helper()
	all, err := w.examine(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var problems []string
	found := false
	for _, f := range all {
		if f.Result == Problem {
			problems = append(problems, fmt.Sprintf("%s: %s", f.Check, f.Found))
			found = found || f.Check == check && strings.Contains(f.Found, text)
		}
		if (f.Result == Problem) != (f.Mend != "") {
			w.t.Errorf("%+v: want advice about a problem, and about nothing else", f)
		}
		if !slices.Contains(Checks(), f.Check) {
			w.t.Errorf("%s is not among the checks", f.Check)
		}
	}
	if want := min(len(check), 1); len(problems) != want || want == 1 && !found {
		w.t.Errorf("problems %q, want %s with %q", problems, check, text)
	}
	return all
}
