package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// realGateway serves one watch, primed with one resource, on port 0.
type realGateway struct {
	gateway  *Gateway
	registry *watch.Registry
	watch    *watch.Watch
	source   *gatewaytest.Script
	address  string
	stop     context.CancelFunc // begins the shutdown
	served   chan error         // what Serve returned
}

func newRealGateway(t *testing.T, c Config, secure *tls.Config) *realGateway {
	t.Helper()
	c.Registry, c.Drain, c.DrainDelay = watch.NewRegistry(), -1, -1
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	r := &realGateway{registry: c.Registry, source: gatewaytest.NewScript()}
	var err error
	if r.watch, err = c.Registry.Add(watch.Config{Name: "a", Source: r.source}); err != nil {
		t.Fatal(err)
	}
	r.source.Steps <- func(s stream.Sink) error {
		return errors.Join(s.Reset("e1"), s.Upsert(gatewaytest.Resource("k", 1, "1")), s.Commit(1))
	}
	if err := r.watch.Prime(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Pump = cmp.Or(c.Pump, pumpUnderTest())
	if r.gateway, err = New(c); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	r.served = make(chan error, 1)
	go func() { r.served <- r.gateway.Serve(ctx, Listeners{HTTP: listener, HTTPTLS: secure}) }()
	t.Cleanup(func() {
		r.stop()
		if err := <-r.served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		c.Registry.Close()
	})
	return r
}

// certificate makes a certificate for 127.0.0.1 that is valid for the test.
func certificate(t testing.TB) (server *tls.Config, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, roots
}

func TestProtocols(t *testing.T) {
	secure, roots := certificate(t)
	for _, test := range []struct {
		name   string
		tls    bool
		choose func(*http.Protocols)
		want   int // major version of HTTP
	}{
		{"HTTP/1.1", false, func(p *http.Protocols) { p.SetHTTP1(true) }, 1},
		{"h2c", false, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, 2},
		{"HTTP/1.1 over TLS", true, func(p *http.Protocols) { p.SetHTTP1(true) }, 1},
		{"HTTP/2 over TLS", true, func(p *http.Protocols) { p.SetHTTP2(true) }, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			var protocols http.Protocols
			test.choose(&protocols)
			scheme, config := "http://", (*tls.Config)(nil)
			if test.tls {
				scheme, config = "https://", secure
			}
			r := newRealGateway(t, Config{}, config)
			transport := &http.Transport{Protocols: &protocols, TLSClientConfig: &tls.Config{RootCAs: roots}}
			defer transport.CloseIdleConnections()
			res, err := (&http.Client{Transport: transport}).Get(scheme + r.address + "/v1/events?watch=a&format=ndjson")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.ProtoMajor != test.want {
				t.Errorf("spoke %s", res.Proto)
			}
			testLiveStream(t, r, bufio.NewReader(res.Body))
		})
	}
}

// testLiveStream reads the snapshot and then a change.
func testLiveStream(t *testing.T, r *realGateway, body *bufio.Reader) {
	t.Helper()
	want := []string{"hello", "reset", "position", "upsert", "end_of_snapshot", "position"}
	for _, line := range want {
		wantLine(t, body, line)
	}
	r.source.Steps <- func(s stream.Sink) error {
		return errors.Join(s.Upsert(gatewaytest.Resource("k", 2, "2")), s.Commit(2))
	}
	wantLine(t, body, "upsert")
	wantLine(t, body, "position")
}

func wantLine(t *testing.T, body *bufio.Reader, kind string) {
	t.Helper()
	got, err := body.ReadString('\n')
	if err != nil || !strings.HasPrefix(got, `{"type":"`+kind+`"`) {
		t.Fatalf("got %q, %v: want %s", got, err, kind)
	}
}

// Over HTTP/2, a stream that its client does not read ends alone; the connection and
// its other streams stay open.
func TestStreamThatIsNotReadOnHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writeTimeout = 2 * time.Second
		r := newRig(t, Config{StreamSettings: StreamSettings{WriteTimeout: writeTimeout}}, "a")
		r.Prime("a", 1, gatewaytest.Resource("k1", 1, "1"))
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		dials := 0
		// Much must be sent: no compression.
		transport := &http.Transport{Protocols: &protocols, DisableCompression: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			return r.network.Dial(ctx, network, address)
		}}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		open := func() *http.Response {
			res, err := client.Get("http://gateway/v1/events?watch=a&format=ndjson")
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the transport knows that the connection can be shared
			return res
		}
		stalled, other := open(), open()
		defer stalled.Body.Close()
		defer other.Body.Close()
		lines := bufio.NewReaderSize(other.Body, 2<<20)
		// The client's library buffers some megabytes of an unread stream. A new key
		// each time: versions of one key would be conflated, and few of them sent.
		value := `"` + strings.Repeat("x", 1<<20) + `"`
		const last = 20
		write := func(i uint64, value string) {
			r.Commit("a", i, gatewaytest.Resource(fmt.Sprint("k", i), i, value))
			if err := readTo(lines, fmt.Sprintf(`"revision":"%d"`, i)); err != nil {
				t.Fatalf("the other stream, at revision %d: %v", i, err)
			}
		}
		for i := uint64(2); i <= last; i++ {
			write(i, value)
		}
		time.Sleep(writeTimeout + slack())
		synctest.Wait()
		if w, _ := r.Registry.Watch("a"); w.Subscribers() != 1 {
			t.Fatalf("%d subscribers after the write time-out: want the one that reads", w.Subscribers())
		}
		if _, err := io.Copy(io.Discard, stalled.Body); err == nil {
			t.Error("the unread stream ended cleanly")
		}
		write(last+1, `"small"`)
		if dials != 1 {
			t.Errorf("%d connections: want one", dials)
		}
		if n := counter(t, r.gateway, "watchtide_write_timeouts_total", "transport", "ndjson"); n != 1 {
			t.Errorf("%v write time-outs are counted", n)
		}
	})
}

// waitFor waits until the watch has only so many subscribers, and the gateway so many
// streams.
func (r *realGateway) waitFor(t *testing.T, subscribers int) {
	t.Helper()
	await(t, func() (bool, string) {
		n, streams := r.watch.Subscribers(), r.gateway.admission.Count()
		return n <= subscribers && streams <= subscribers, fmt.Sprintf("%d subscribers, %d streams: want %d", n, streams, subscribers)
	})
}

// await waits until something holds that the kernel or net/http has a part in, so that
// it cannot be waited for in fake time. Only what never holds takes a minute.
func await(t *testing.T, holds func() (bool, string)) {
	t.Helper()
	for began := time.Now(); ; <-time.After(time.Millisecond) {
		ok, instead := holds()
		if ok {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatal(instead)
		}
	}
}

func readUpTo(body io.Reader, what string) error {
	return readTo(bufio.NewReaderSize(body, 2<<20), what)
}

func readTo(lines *bufio.Reader, what string) error {
	for {
		line, err := lines.ReadString('\n')
		if err != nil || strings.Contains(line, what) {
			return err
		}
	}
}

// A request head that trickles in is ended after a while, complete or not.
func TestSlowLoris(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		c := r.dial("GET /v1/events?watch=a HTTP/1.1\r\n")
		began := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			io.Copy(io.Discard, c)
		}()
		for !session.Closed(ended) {
			io.WriteString(c, "X: y\r\n")
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > netconn.ReadHeaderTimeout+time.Second {
			t.Errorf("held for %s", took)
		}
	})
}

func TestSilentConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		c := r.dial("")
		began := time.Now()
		io.Copy(io.Discard, c)
		if took := time.Since(began); took != netconn.ReadHeaderTimeout {
			t.Errorf("held for %s", took)
		}
	})
}

func TestIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		c := r.dial("GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n")
		began := time.Now()
		io.Copy(io.Discard, c)
		if took := time.Since(began); took != netconn.IdleTimeout {
			t.Errorf("held for %s", took)
		}
	})
}

func TestRequestHeadThatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		x := r.get("/v1/events?watch=a", "X: "+strings.Repeat("x", 2*netconn.MaxHeaderBytes))
		if x.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("got %s", x.Status)
		}
	})
}

// brokenListener fails like a listener whose socket is gone.
type brokenListener struct{ net.Listener }

var errBroken = errors.New("broken")

func (brokenListener) Accept() (net.Conn, error) { return nil, errBroken }

func TestServeReturnsTheErrorOfAListener(t *testing.T) {
	registry := watch.NewRegistry()
	defer registry.Close()
	g, err := New(Config{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Serve(t.Context(), Listeners{HTTP: brokenListener{gatewaytest.NewNetwork()}}); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

func TestServeNeedsAListener(t *testing.T) {
	registry := watch.NewRegistry()
	defer registry.Close()
	g, err := New(Config{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Serve(t.Context(), Listeners{}); err == nil || !strings.Contains(err.Error(), "HTTP is missing") {
		t.Errorf("got %v", err)
	}
}

// HTTP/2 ends a stream whose write deadline passes even if nothing is written: a
// stream that only waits must have none.
func TestQuietStreamOnHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{WriteTimeout: 10 * time.Second, Heartbeat: 15 * time.Second}}, "a")
		r.Prime("a", 1)
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		transport := r.client.Transport.(*http.Transport)
		transport.Protocols = &protocols
		x := r.get("/v1/events?watch=a")
		if x.ProtoMajor != 2 {
			t.Fatalf("spoke %s", x.Proto)
		}
		time.Sleep(5 * time.Minute)
		if got := strings.Count(x.Text(), ": heartbeat\n\n"); got != 20 {
			t.Errorf("%d heartbeats in 5 minutes, want 20", got)
		}
		if over, err := x.Over(); over {
			t.Errorf("the stream ended: %v", err)
		}
	})
}

func TestServerLog(t *testing.T) {
	var out bytes.Buffer
	l := serverLog{slog.New(slog.NewTextHandler(&out, nil))} // nothing below Info
	io.WriteString(l, "http: TLS handshake error from 192.0.2.1:1: EOF\n")
	if out.Len() > 0 {
		t.Errorf("a client's fault is logged: %s", &out)
	}
	io.WriteString(l, "http: panic serving 192.0.2.1:1: oh\n")
	if !strings.Contains(out.String(), "level=ERROR") {
		t.Errorf("a panic is logged as %q", &out)
	}
}

// write changes one resource.
func (r *realGateway) write(key string, revision uint64, value string) {
	r.source.Steps <- func(s stream.Sink) error {
		return errors.Join(s.Upsert(gatewaytest.Resource(key, revision, value)), s.Commit(revision))
	}
}
