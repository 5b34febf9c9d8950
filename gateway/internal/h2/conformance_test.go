//go:build servers

package h2

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestConformance runs h2spec, a suite of tests of RFC 9113 and of the compression of headers, against a server with
// TLS.
func TestConformance(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "an answer of a few bytes")
	}))
	Configure(server.Config, settings)
	server.TLS = &tls.Config{NextProtos: []string{"h2"}}
	server.StartTLS()
	defer server.Close()
	tools, err := filepath.Abs("../../../tools/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+tools, "h2spec", "--tls", "--insecure", "--host", host, "--port", port).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "0 skipped, 0 failed") {
		_, failures, _ := strings.Cut(string(out), "Failures:")
		t.Errorf("%v:\n%s%s", err, out[:min(len(out), 200)], failures)
	}
	summary := strings.TrimSpace(string(out))
	t.Log(summary[strings.LastIndex(summary, "\n")+1:])
}
