package kubernetes

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// TestRefusals: errors have the server's message, and a remedy.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, want string
		answer     http.HandlerFunc
	}{
		{"401", "Unauthorized; want credentials that the server knows", replies(401, status(401, "Unauthorized", "Unauthorized"))},
		{"403", `widgets is forbidden: User "x"; want a role that may list and watch it`, replies(403, status(403, "Forbidden", `widgets is forbidden: User "x"`))},
		{"405", "not allowed; want a resource that can be listed and watched", replies(405, status(405, "MethodNotAllowed", "not allowed"))},
		{"429", "slow down", replies(429, status(429, "TooManyRequests", "slow down"))},
		{"500", "boom", replies(500, status(500, "InternalError", "boom"))},
		{"a proxy", "<html>bad gateway", replies(502, "<html>bad gateway"+strings.Repeat(" and so on", 100))},
		{"nothing at all", "404", replies(404, "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(f *fake) {
				f.initial, f.list = c.answer, c.answer
				err := f.start(nil).end()
				if c.name == "nothing at all" {
					c.want = `the server has no group "example.com"; want the name of an API group`
				}
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q in it", err, c.want)
				}
				if len(err.Error()) > 500 {
					t.Errorf("an error of %d bytes: %v", len(err.Error()), err)
				}
				if !strings.HasPrefix(err.Error(), "kubernetes https://example.com, widgets.example.com/v1: ") {
					t.Errorf("error %v, want the location in it", err)
				}
			})
		})
	}
}

// TestRetryAfter: the wait is honored up to a limit, even if only the header
// has it.
func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{"4": 4 * time.Second, "4000": maxRetryWait, "soon": 0} {
		inBubble(t, func(f *fake) {
			f.initial = inTurn(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", header)
				w.WriteHeader(429)
				fmt.Fprint(w, status(429, "TooManyRequests", "slow down"))
			}, stalls(markerAt(3)))
			if err := f.start(nil).end(); err == nil {
				t.Fatal("no error")
			}
			began := time.Now()
			r := f.start(nil)
			r.after(want)
			r.wantState(3)
			if waited := time.Since(began); waited != want {
				t.Errorf("Retry-After %s: waited %v, want %v", header, waited, want)
			}
			r.stop()
		})
	}
}

func TestAddressesWithoutServer(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	closed := realserver.FreePort(t)
	for _, c := range []struct{ name, server, want string }{
		{"nobody listens", "https://" + realserver.Address(closed), "connection refused"},
		{"no TLS there", "https://" + plain.Listener.Addr().String(), "want http:// if that is what the server speaks"},
		{"TLS there", "http://" + secure.Listener.Addr().String(), "want https:// in the server's address"},
		{"another authority", secure.URL, "want the certificate-authority that signed the server's certificate"},
		{"no such scheme", "ftp://example.com", "unsupported protocol scheme"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustNew(t, Config{Objects: Objects{Version: "v1", Resource: "pods"}, Kubeconfig: writeFile(t, "kubeconfig", kubeconfigOf(c.server))})
			err := record(t, s, nil).failure()
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.server) {
				t.Errorf("error %v, want %q in it, and %q", err, c.want, c.server)
			}
		})
	}
}

// kubeconfigOf has one server, and no user.
func kubeconfigOf(server string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x,
		clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}],
		contexts: [{name: x, context: {cluster: c, user: u}}]}`, server)
}

func TestHintOfANameThatIsNone(t *testing.T) {
	err := &url.Error{Op: "Get", URL: "https://x", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}}
	if got := hint(withoutURL(err)); !strings.Contains(got, "want a name that can be resolved") {
		t.Errorf("hint %q", got)
	}
}

// TestDead: net/http reports this only in words. If they change, this package
// must, too.
func TestDead(t *testing.T) {
	for text, want := range map[string]bool{
		"http2: client connection lost": true, "net/http: TLS handshake timeout": true, "EOF": false,
	} {
		if got := errors.Is(because(t.Context(), errors.New(text)), stream.ErrStalled); got != want {
			t.Errorf("%s counts as stalled: %v, want %v", text, got, want)
		}
	}
}
