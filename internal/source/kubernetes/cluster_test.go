//go:build servers

package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// cluster is a real API server of custom resources, and a client of it other
// than the one under test.
type cluster struct {
	t      testing.TB
	server *realserver.Server
	http   *http.Client
}

// sharedCluster returns the server for tests that do not disrupt it.
func sharedCluster(t testing.TB) *cluster {
	return clusterOf(t, realserver.Shared(t, realserver.Build(t, "kubernetes")))
}

// ownCluster starts a server with a port and data that survive a restart.
func ownCluster(t testing.TB, flags ...string) *cluster {
	args := append([]string{"-listen", realserver.FreeAddress(t), "-data", t.TempDir()}, flags...)
	return clusterOf(t, realserver.Start(t, realserver.Build(t, "kubernetes"), args...))
}

func clusterOf(t testing.TB, server *realserver.Server) *cluster {
	c := &cluster{t: t, server: server}
	pem, err := os.ReadFile(c.certificate())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	c.http = &http.Client{Transport: transport}
	return c
}

func (c *cluster) certificate() string { return c.server.Fields()[0] }

// data is the server's working directory.
func (c *cluster) data() string { return filepath.Dir(filepath.Dir(c.certificate())) }

// kubeconfig writes a file for a user of the server at address.
func (c *cluster) kubeconfig(address, user string) string {
	return writeFile(c.t, "kubeconfig", fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: somebody, user: %s}]
contexts: [{name: this, context: {cluster: here, user: somebody}}]
current-context: this
`, address, c.certificate(), user))
}

const admin = `{token: admin}`

// do makes a request as admin, and fails unless the answer has a code below 300
// or one of also.
func (c *cluster) do(method, path, body string, also ...int) (answer string, code int) {
	c.t.Helper()
	answer, code, err := c.try(method, path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, ok := range also {
		if code == ok {
			return answer, code
		}
	}
	if code >= 300 {
		c.t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer, code
}

// try makes a request as admin. It waits 20 seconds at most.
func (c *cluster) try(method, path, body string) (answer string, code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return c.tryWithin(ctx, method, path, body)
}

func (c *cluster) tryWithin(ctx context.Context, method, path, body string) (answer string, code int, err error) {
	request, err := http.NewRequestWithContext(ctx, method, "https://"+c.server.Addr()+path, strings.NewReader(body))
	if err != nil {
		return "", 0, err
	}
	request.Header.Set("Authorization", "Bearer admin")
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	var b bytes.Buffer
	_, err = io.Copy(&b, response.Body)
	return b.String(), response.StatusCode, err
}

// await polls until a condition holds.
func (c *cluster) await(what string, so func() bool) {
	c.t.Helper()
	ctx := c.t.Context()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.t.Fatalf("the test ended while it waited for %s", what)
		case <-late.C:
			c.t.Fatalf("still waiting for %s", what)
		}
	}
}

// restart kills the server and starts it again.
func (c *cluster) restart() {
	c.t.Helper()
	if err := c.server.Restart(); err != nil {
		c.t.Fatal(err)
	}
}

// backup returns a copy of etcd's present data.
func (c *cluster) backup() (dir string) {
	c.t.Helper()
	dir = filepath.Join(c.t.TempDir(), "backup")
	c.server.Kill()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(c.data(), "etcd"))); err != nil {
		c.t.Fatal(err)
	}
	c.restart()
	return dir
}
