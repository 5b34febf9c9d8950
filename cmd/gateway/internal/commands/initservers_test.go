//go:build servers

package commands

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// initialised writes a configuration with init, checks it, and serves it.
func initialised(t *testing.T, args ...string) *served {
	t.Helper()
	config := filepath.Join(t.TempDir(), "watchtide.yaml")
	if code, stdout, stderr := command(t, append([]string{"init", config}, args...)...); code != 0 || strings.Contains(stdout, "did not say") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr := command(t, "config", "check", config); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	return serve(t, "--config", config)
}

func TestInitForEtcd(t *testing.T) {
	address, put := withEtcd(t)
	put("/settings/a", "/settings/b/c", "/settings0/x", "jobs/${HOME}", "jobs/1")
	g := initialised(t, "--etcd", address)
	g.expectKeys("settings", "a", "b/c")
	g.expectKeys("settings0", "x")
	g.expectKeys("jobs", "1", "${HOME}")
	put("toplevel")
	g = initialised(t, "--etcd", "http://"+address)
	g.expectKeys("keys", "/settings/a", "/settings/b/c", "/settings0/x", "jobs/${HOME}", "jobs/1", "toplevel")
}

func TestInitForNATS(t *testing.T) {
	address, fill := withNATS(t)
	fill("flags", "of-flags")
	fill("prices", "of-prices")
	t.Setenv("NATS_URL", address)
	g := initialised(t, "--nats", address)
	g.expectKeys("flags", "of-flags")
	g.expectKeys("prices", "of-prices")
}

func TestInitForKubernetes(t *testing.T) {
	server := started(t, "kubernetes")
	certificate := server.Fields()[0]
	pem, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	admin := authorised{transport}
	post := func(path, body string) {
		t.Helper()
		deadline := time.Now().Add(patience)
		for ticker := time.NewTicker(50 * time.Millisecond); ; <-ticker.C { // a definition takes a moment
			status, answer := fetch(t, admin, "POST", "https://"+server.Addr()+path, body)
			if status == http.StatusCreated {
				ticker.Stop()
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d %s", path, status, answer)
			}
		}
	}
	post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":
		{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
	post("/apis/example.com/v1/namespaces/shop/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"one","namespace":"shop"}}`)
	kubeconfig := file(t, "kubeconfig", fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: somebody, user: {token: admin}}]
contexts: [{name: this, context: {cluster: here, user: somebody}}]
current-context: this
`, server.Addr(), certificate))
	g := initialised(t, "--kubernetes", kubeconfig)
	g.expectKeys("widgets", "shop/one")
}

// authorised sends the administrator's token.
type authorised struct{ next *http.Transport }

func (a authorised) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer admin")
	r.Header.Set("Content-Type", "application/json")
	return a.next.RoundTrip(r)
}

// TestInitForConsul runs a whole Consul, which takes minutes to compile.
func TestInitForConsul(t *testing.T) {
	if os.Getenv("WATCHTIDE_FULL_CONSUL") == "" {
		t.Skip("WATCHTIDE_FULL_CONSUL is not set")
	}
	g := initialised(t, "--consul", startConsul(t))
	g.expectKeys("health", "consul/test/consul")
}
