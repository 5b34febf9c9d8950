package gateway

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/wire"
)

// onHijackedStreams runs a test over TLS and in plain text, with the goroutine pump.
func onHijackedStreams(t *testing.T, c Config, test func(*testing.T, *realGateway, *x509.CertPool)) {
	secure, roots := certificate(t)
	c.Pump = PumpGoroutines
	t.Run("TLS", func(t *testing.T) { test(t, newRealGateway(t, c, secure), roots) })
	t.Run("plain", func(t *testing.T) { test(t, newRealGateway(t, c, nil), nil) })
}

// onTakenConnections is onHijackedStreams also with the shards, which take over the connections too.
func onTakenConnections(t *testing.T, c Config, test func(*testing.T, *realGateway, *x509.CertPool)) {
	onHijackedStreams(t, c, test)
	secure, roots := certificate(t)
	c.Pump = PumpShards
	t.Run("shards/TLS", func(t *testing.T) { test(t, newRealGateway(t, c, secure), roots) })
	t.Run("shards/plain", func(t *testing.T) { test(t, newRealGateway(t, c, nil), nil) })
}

// handStream is a client that writes HTTP itself, perhaps over TLS.
type handStream struct {
	net.Conn // as it writes and reads
	tcp      *net.TCPConn
	r        *bufio.Reader
}

func (s *handStream) until(what string) error { return (&rawStream{r: s.r}).until(what) }

// dialStream opens a stream and reads up to the end of its snapshot. It sends behind
// together with the request.
func dialStream(t testing.TB, address string, roots *x509.CertPool, behind string) *handStream {
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
	if _, err := io.WriteString(s.Conn, rawGet("/v1/events?watch=a")+behind); err != nil {
		t.Fatal(err)
	}
	if err := s.until("end_of_snapshot"); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestIdleStreamsCostOneGoroutineEach also checks that no goroutine remains when
// they have ended.
func TestIdleStreamsCostOneGoroutineEach(t *testing.T) {
	onHijackedStreams(t, Config{}, func(t *testing.T, r *realGateway, roots *x509.CertPool) {
		first := dialStream(t, r.address, roots, "") // also starts the hangup watcher
		waitIdle()
		const carrier, n = gatewaytest.GatewayCode + "/internal/session.(*hijackedStream).run", 100
		// What else runs in the gateway does not depend on the streams: a few goroutines,
		// which may begin and end at any time.
		const few = n / 4
		before := gatewaytest.GoroutinesIn(gatewaytest.GatewayCode)
		cost := func(when string) {
			t.Helper()
			waitIdle()
			carried, more := gatewaytest.GoroutinesIn(carrier), gatewaytest.GoroutinesIn(gatewaytest.GatewayCode)-before
			if carried != n+1 || more > n+few {
				t.Errorf("%s, %d goroutines carry %d streams, and there are %d more than with one", when, carried, n+1, more)
			}
		}
		var all []*handStream
		for range n {
			all = append(all, dialStream(t, r.address, roots, ""))
		}
		cost("at rest")
		r.write("k", 2, `"news"`)
		for _, s := range append(all, first) {
			if err := s.until(`"news"`); err != nil {
				t.Fatal(err)
			}
		}
		cost("after news")
		for _, s := range all {
			s.Close()
		}
		r.waitFor(t, 1)
		await(t, func() (bool, string) {
			carried, more := gatewaytest.GoroutinesIn(carrier), gatewaytest.GoroutinesIn(gatewaytest.GatewayCode)-before
			return carried == 1 && more <= few, fmt.Sprintf("%d goroutines carry one stream, and there are %d more than before", carried, more)
		})
	})
}

// TestHijackedClientDisconnects checks that a disconnect of any kind is noticed
// without a heartbeat.
func TestHijackedClientDisconnects(t *testing.T) {
	for name, leave := range map[string]func(*handStream) error{
		"closes":    func(s *handStream) error { return s.Close() },
		"drops TCP": func(s *handStream) error { return s.tcp.Close() },
		"resets":    func(s *handStream) error { return errors.Join(s.tcp.SetLinger(0), s.tcp.Close()) },
		"half-closes, then closes": func(s *handStream) error {
			return errors.Join(s.Conn.(interface{ CloseWrite() error }).CloseWrite(), s.tcp.Close())
		},
		"sends nonsense and drops TCP": func(s *handStream) error {
			_, err := io.WriteString(s.tcp, "nonsense")
			return errors.Join(err, s.tcp.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			onTakenConnections(t, Config{StreamSettings: StreamSettings{Heartbeat: 24 * time.Hour}}, func(t *testing.T, r *realGateway, roots *x509.CertPool) {
				if err := leave(dialStream(t, r.address, roots, "")); err != nil {
					t.Fatal(err)
				}
				r.waitFor(t, 0)
			})
		})
	}
}

// TestCloseNotifyWithTheRequest checks a close_notify that was read together with
// the request, before the stream began: it means only that nothing follows.
func TestCloseNotifyWithTheRequest(t *testing.T) {
	secure, roots := certificate(t)
	r := newRealGateway(t, Config{}, secure)
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	held := &heldConn{Conn: c}
	client := tls.Client(held, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	held.hold = true
	_, err = io.WriteString(client, rawGet("/v1/events?watch=a"))
	if err := errors.Join(err, client.CloseWrite(), held.release()); err != nil {
		t.Fatal(err)
	}
	read := bufio.NewReader(client)
	if err := (&rawStream{r: read}).until("end_of_snapshot"); err != nil {
		t.Fatal(err)
	}
	r.registry.Remove("a")
	if _, err := io.Copy(io.Discard, read); err != nil {
		t.Error(err)
	}
	r.waitFor(t, 0)
}

// heldConn delays writes, to send them as one.
type heldConn struct {
	net.Conn
	hold bool
	held []byte
}

func (c *heldConn) Write(p []byte) (int, error) {
	if !c.hold {
		return c.Conn.Write(p)
	}
	c.held = append(c.held, p...)
	return len(p), nil
}

func (c *heldConn) release() error {
	err := c.SetWriteDeadline(time.Time{}) // that of CloseWrite
	_, failed := c.Conn.Write(c.held)
	return errors.Join(err, failed)
}

// TestHijackedBytesAfterRequest checks that bytes after the request are not
// answered, and disturb neither the stream nor its end.
func TestHijackedBytesAfterRequest(t *testing.T) {
	for name, behind := range map[string]string{
		"a request": "GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n",
		"much":      strings.Repeat("nonsense", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			onTakenConnections(t, Config{}, func(t *testing.T, r *realGateway, roots *x509.CertPool) {
				behind := behind
				if roots != nil { // see epoll.HeardAtMost
					behind = behind[:min(len(behind), 3000)]
				}
				s := dialStream(t, r.address, roots, behind)
				if _, err := io.WriteString(s, behind); err != nil {
					t.Fatal(err)
				}
				r.write("k", 2, `"news"`)
				if err := s.until(`"news"`); err != nil {
					t.Fatal(err)
				}
				r.registry.Remove("a")
				rest, err := io.ReadAll(s.r)
				if err != nil || !strings.Contains(string(rest), "watch_removed") || !strings.HasSuffix(string(rest), "\r\n0\r\n\r\n") {
					t.Errorf("%q, %v", rest, err)
				}
				if strings.Contains(string(rest), "HTTP/1.1") {
					t.Errorf("bytes after the request were answered: %q", rest)
				}
			})
		})
	}
}

// TestShutdownOfHijackedStreams checks that they get a goodbye, and that clients
// can read to the end.
func TestShutdownOfHijackedStreams(t *testing.T) {
	onTakenConnections(t, Config{}, func(t *testing.T, r *realGateway, roots *x509.CertPool) {
		s := dialStream(t, r.address, roots, "")
		r.stop()
		rest, err := io.ReadAll(s.r)
		if err != nil || !strings.Contains(string(rest), "draining") || !strings.HasSuffix(string(rest), wire.LastChunk) {
			t.Errorf("%q, %v", rest, err)
		}
		s.Close()
		if err := <-r.served; err != nil {
			t.Error(err)
		}
		r.served <- nil // for the end of the test
	})
}

// TestAbortOfHijackedStreams checks that connections are closed abruptly, even that
// of a client that does not read.
func TestAbortOfHijackedStreams(t *testing.T) {
	// A stream that stays with net/http notices at a heartbeat that its client
	// disconnected.
	onHijackedStreams(t, Config{StreamSettings: StreamSettings{Heartbeat: 100 * time.Millisecond}}, func(t *testing.T, r *realGateway, roots *x509.CertPool) {
		waits, stalls := dialStream(t, r.address, roots, ""), dialStream(t, r.address, roots, "")
		value := `"` + strings.Repeat("x", 1<<20) + `"`
		for i := range uint64(20) {
			r.write(string(rune('a'+i)), i+2, value)
			if err := waits.until(`"revision"`); err != nil {
				t.Fatal(err)
			}
		}
		r.gateway.hijacked.Abort()
		if n := r.watch.Subscribers(); n != 0 {
			t.Errorf("%d subscribers are left", n)
		}
		if _, err := io.Copy(io.Discard, stalls.r); err == nil && roots != nil {
			t.Error("a stream that was cut off ended cleanly")
		}
		// A new stream stays with net/http.
		again := dialStream(t, r.address, roots, "")
		gatewaytest.WaitGoroutines("net/http.(*conn).serve", 1)
		again.Close()
		r.waitFor(t, 0)
	})
}

// TestStreamInForeignServer checks that the stream stays with that server's
// net/http.
func TestStreamInForeignServer(t *testing.T) {
	r := newRealGateway(t, Config{}, nil)
	server := httptest.NewServer(r.gateway.Handler())
	defer server.Close()
	res, err := http.Get(server.URL + "/v1/events?watch=a&format=ndjson")
	if err != nil {
		t.Fatal(err)
	}
	if res.Close {
		t.Error("the connection was taken")
	}
	testLiveStream(t, r, bufio.NewReader(res.Body))
	res.Body.Close()
	r.waitFor(t, 0)
}
