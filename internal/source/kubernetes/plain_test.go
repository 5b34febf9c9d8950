//go:build servers

package kubernetes

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// plainly serves the cluster in plain HTTP/1.1 and adds the credentials, as
// kubectl proxy does.
func (c *cluster) plainly(t *testing.T) (address string) {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: c.server.Addr()})
	proxy.Transport, proxy.FlushInterval = c.http.Transport, -1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer admin")
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.Listener.Addr().String()
}

// TestPlainHTTP: there are no pings. Watches are short, and resume.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	k := sharedKind(t)
	k.mustPut("one", "a", `1`)
	proxy := realserver.NewProxy(t, k.plainly(t))
	c := k.config()
	c.Kubeconfig = writeFile(t, "kubeconfig", kubeconfigOf("http://"+proxy.Addr()))
	s := mustNew(t, c)
	r := record(t, s, nil)
	r.untilKeys("one/a")
	before := proxy.Bytes(realserver.Upstream)
	const longer = 300 // bytes: the requests of one more watch
	k.await("the next watch", func() bool { return proxy.Bytes(realserver.Upstream) > before+longer })
	k.mustPut("one", "b", `1`)
	r.untilKeys("one/a", "one/b")
	if r.Resets() != 1 {
		t.Errorf("%d resets, want one", r.Resets())
	}
	proxy.Stall()
	began := time.Now()
	if err := r.failure(); !errors.Is(err, stream.ErrStalled) {
		t.Errorf("error %v, want one that wraps %q", err, stream.ErrStalled)
	}
	if took, limit := time.Since(began), 3*c.StallAfter+2*time.Second; took > limit {
		t.Errorf("a dead connection was noticed after %v, want %v at most", took, limit)
	}
}
