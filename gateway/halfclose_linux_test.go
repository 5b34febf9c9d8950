package gateway

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/wire"
)

// halfClosed sends a request and ends its side of the connection at once, as "printf
// … | nc" does.
func halfClosed(t *testing.T, address string, roots *x509.CertPool, request string) *handStream {
	t.Helper()
	s := sendHand(t, address, roots, request)
	if err := s.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	return s
}

// openHand opens a stream and reads up to the end of its snapshot.
func openHand(t *testing.T, address string, roots *x509.CertPool, request string) *handStream {
	t.Helper()
	s := sendHand(t, address, roots, request)
	if err := s.until("end_of_snapshot"); err != nil {
		t.Fatal(err)
	}
	return s
}

func sendHand(t *testing.T, address string, roots *x509.CertPool, request string) *handStream {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s := &handStream{Conn: c, tcp: c.(*net.TCPConn)}
	if roots != nil {
		s.Conn = tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
	}
	s.r = bufio.NewReader(s.Conn)
	if _, err := io.WriteString(s.Conn, request); err != nil {
		t.Fatal(err)
	}
	return s
}

// forEachCarrier runs a test with every way to carry a stream.
func forEachCarrier(t *testing.T, c Config, test func(t *testing.T, r *realGateway, roots *x509.CertPool, request string)) {
	secure, roots := certificate(t)
	t.Run("plain", func(t *testing.T) { test(t, newRealGateway(t, c, nil), nil, rawGet("/v1/events?watch=a")) })
	t.Run("TLS", func(t *testing.T) { test(t, newRealGateway(t, c, secure), roots, rawGet("/v1/events?watch=a")) })
	t.Run("HTTP/1.0", func(t *testing.T) {
		test(t, newRealGateway(t, c, nil), nil, "GET /v1/events?watch=a HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n")
	})
}

// TestHalfClosedStream checks that the stream continues: its client has only
// announced that it sends nothing more.
func TestHalfClosedStream(t *testing.T) {
	forEachCarrier(t, Config{}, func(t *testing.T, r *realGateway, roots *x509.CertPool, request string) {
		var all []*handStream
		for range 20 { // it may be noticed at any time
			all = append(all, halfClosed(t, r.address, roots, request))
		}
		for _, s := range all {
			if err := s.until("end_of_snapshot"); err != nil {
				t.Fatal(err)
			}
		}
		r.write("k", 2, `"news"`)
		for _, s := range all {
			if err := s.until(`"news"`); err != nil {
				t.Fatal(err)
			}
		}
		r.registry.Remove("a")
		for _, s := range all {
			rest, err := io.ReadAll(s.r)
			if err != nil || !strings.Contains(string(rest), "watch_removed") {
				t.Errorf("%q, %v", rest, err)
			}
		}
	})
}

// TestHalfCloseIsAnsweredAtOnce checks that it is answered exactly once: so a client
// that has in fact disconnected is noticed, and repeated reports of the system about
// the connection cause no work.
func TestHalfCloseIsAnsweredAtOnce(t *testing.T) {
	forEachCarrier(t, Config{StreamSettings: StreamSettings{Heartbeat: time.Hour}}, func(t *testing.T, r *realGateway, roots *x509.CertPool, request string) {
		s := openHand(t, r.address, roots, request)
		for len(r.gateway.now.Load().introspection.Overview(&introspection.Query{Filter: introspection.Filter{Watch: "a"}, Limit: 10}, nil).Subscribers) == 0 {
			<-time.After(time.Millisecond)
		}
		if err := s.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if err := s.until(": heartbeat"); err != nil {
			t.Fatal(err)
		}
		r.write("k", 2, `"news"`)
		for line := ""; !strings.Contains(line, `"news"`); {
			var err error
			if line, err = s.r.ReadString('\n'); err != nil || strings.Contains(line, "heartbeat") {
				t.Fatalf("%q, %v", line, err)
			}
		}
	})
}

// TestAttackHalfCloseThenDisconnect checks that a half-closed connection that is
// reset or closed by its client holds its stream only until the next heartbeat.
func TestAttackHalfCloseThenDisconnect(t *testing.T) {
	forEachCarrier(t, Config{StreamSettings: StreamSettings{Heartbeat: 100 * time.Millisecond}}, func(t *testing.T, r *realGateway, roots *x509.CertPool, request string) {
		for i := range 20 {
			s := halfClosed(t, r.address, roots, request)
			if i%2 == 0 {
				if err := s.until("end_of_snapshot"); err != nil {
					t.Fatal(err)
				}
			}
			if i%4 < 2 {
				_ = s.tcp.SetLinger(0)
			}
			s.tcp.Close()
		}
		r.waitFor(t, 0)
	})
}

// TestHalfClosedRequest checks that any half-closed request is answered in full.
func TestHalfClosedRequest(t *testing.T) {
	secure, roots := certificate(t)
	test := func(t *testing.T, r *realGateway, roots *x509.CertPool) {
		r.write("large", 2, `"`+strings.Repeat("x", 1<<20)+`"`)
		for r.watch.Snapshot().Revision() != 2 {
			<-time.After(time.Millisecond)
		}
		for path, want := range map[string]string{
			"/healthz":                                 "ok",
			"/v1/watches":                              `"name":"a"`,
			"/v1/watches/a/resources":                  `"next_page_token"`,
			"/v1/watches/a/resources/large":            "xxx",
			"/v1/watches/a/changes":                    `"position":"a@e1-2"}`,
			"/v1/watches/a/changes?after=a@e1-2":       `{"events":[],"position":"a@e1-2"}`,
			"/v1/events?watch=a&until=end_of_snapshot": "complete",
		} {
			for range 5 { // it may be noticed at any time
				began := time.Now()
				s := halfClosed(t, r.address, roots, rawGet(path))
				res, err := http.ReadResponse(s.r, nil)
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				body, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != 200 || !strings.Contains(string(body), want) {
					t.Errorf("%s: %s, %v: %.200q … %q", path, res.Status, err, body, body[max(0, len(body)-100):])
				}
				if took := time.Since(began); took > 20*time.Second { // a poll waits for 30
					t.Errorf("%s took %s", path, took)
				}
				s.Close()
			}
		}
	}
	t.Run("plain", func(t *testing.T) { test(t, newRealGateway(t, Config{}, nil), nil) })
	t.Run("TLS", func(t *testing.T) { test(t, newRealGateway(t, Config{}, secure), roots) })
}

// TestCutAnswerLooksCut checks that an answer that the gateway cannot complete has no
// end, even in a foreign server, which does not report that a client only
// half-closed.
func TestCutAnswerLooksCut(t *testing.T) {
	r := newRealGateway(t, Config{}, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := &http.Server{Handler: r.gateway.Handler(), ErrorLog: nil}
	served := make(chan error, 1)
	go func() { served <- other.Serve(listener) }()
	defer func() { other.Close(); <-served }()
	for _, path := range []string{"/v1/events?watch=a", "/v1/watches/a/changes?after=a@e1-1"} {
		s := halfClosed(t, listener.Addr().String(), nil, rawGet(path))
		all, err := io.ReadAll(s.r)
		if strings.HasSuffix(string(all), wire.LastChunk) {
			t.Errorf("%s: %q, %v", path, all, err)
		}
	}
	r.waitFor(t, 0)
}

// TestTLS12EndsBothSides checks that before TLS 1.3 the end of one side is the end of
// both.
func TestTLS12EndsBothSides(t *testing.T) {
	secure, roots := certificate(t)
	secure.MaxVersion = tls.VersionTLS12
	r := newRealGateway(t, Config{}, secure)
	s := dialStream(t, r.address, roots, "")
	if err := s.Conn.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, s.r); err != nil {
		t.Error(err)
	}
	r.waitFor(t, 0)
}
