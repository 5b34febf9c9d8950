package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// secure starts a server with TLS on loopback.
func secure(t *testing.T, http2 bool, turns ...turn) (*httptest.Server, *tls.Config) {
	t.Helper()
	server := httptest.NewUnstartedServer(&fake{turns: turns})
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server, &tls.Config{RootCAs: roots}
}

func followURL(t *testing.T, c Config) (*calls, error) {
	t.Helper()
	u, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	sink, _, err := watchOnce(t, sourceOf(t, u, "w"))
	return sink, err
}

func TestTLS(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			server, trust := secure(t, http2, func(w http.ResponseWriter, r *http.Request) {
				if (r.ProtoMajor == 2) != http2 {
					t.Errorf("the request came by %s", r.Proto)
				}
				replies(primed(), goodbye("draining", 0))(w, r)
			})
			sink, err := followURL(t, Config{URL: server.URL, TLS: trust})
			if err != nil || !strings.HasSuffix(sink.String(), "commit 2") {
				t.Errorf("got %v and\n%s", err, sink)
			}
		})
	}
}

// A stalled HTTP/2 stream would not be the only one to stall on its connection:
// the next request uses another connection.
func TestStalledHTTP2ConnectionIsNotUsedAgain(t *testing.T) {
	addresses := make(chan string, 2)
	note := func(next turn) turn {
		return func(w http.ResponseWriter, r *http.Request) {
			addresses <- r.RemoteAddr
			next(w, r)
		}
	}
	server, trust := secure(t, true, note(stalls(primed())), note(replies(primed(), goodbye("draining", 0))))
	u, err := New(Config{URL: server.URL, TLS: trust, StallAfter: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s := sourceOf(t, u, "w")
	var from []string
	for len(from) < 2 { // on a busy machine the handshake of a connection may stall too
		_ = s.Watch(t.Context(), stream.Resume{}, &calls{})
		select {
		case address := <-addresses:
			from = append(from, address)
		default:
		}
	}
	if from[0] == from[1] {
		t.Errorf("both requests came from %s", from[0])
	}
}

func TestWrongAddresses(t *testing.T) {
	server, _ := secure(t, true, replies(primed()))
	plain := httptest.NewServer(&fake{turns: []turn{replies(primed())}})
	defer plain.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + listener.Addr().String()
	_ = listener.Close()
	for name, c := range map[string]struct{ url, want string }{
		"nobody listens":    {refused, "connection refused"},
		"not trusted":       {server.URL, "certificate signed by unknown authority"},
		"TLS to plain text": {strings.Replace(plain.URL, "http:", "https:", 1), "want a URL that begins with http: if that is what the server speaks"},
		"plain text to TLS": {strings.Replace(server.URL, "https:", "http:", 1), "400 Bad Request"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := followURL(t, Config{URL: c.url})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "gateway "+c.url+`, watch "w": `) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}
