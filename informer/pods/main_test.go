//go:build servers

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMain(m *testing.M) { os.Exit(realserver.Main(m).Run()) }

// cluster is a real API server with one custom resource in place of pods, which it does not have.
type cluster struct {
	t          *testing.T
	server     *realserver.Server
	http       *http.Client
	kubeconfig string
}

func newCluster(t *testing.T) *cluster {
	server := realserver.Start(t, realserver.Build(t, "kubernetes"), "-data", t.TempDir())
	authority := server.Fields()[0]
	pem, err := os.ReadFile(authority)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	c := &cluster{t: t, server: server, http: &http.Client{Transport: transport}, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
		clusters: [{name: c, cluster: {server: "https://%s", certificate-authority: %q}}],
		users: [{name: c, user: {token: admin}}], contexts: [{name: c, context: {cluster: c, user: c}}]}`, server.Addr(), authority)
	if err := os.WriteFile(c.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.await(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"apiVersion":"apiextensions.k8s.io/v1",
		"kind":"CustomResourceDefinition","metadata":{"name":"pods.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"pods","singular":"pod","kind":"Pod","listKind":"PodList"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
	return c
}

// await makes a request until it succeeds.
func (c *cluster) await(method, path, body string) {
	c.t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(c.t.Context(), method, "https://"+c.server.Addr()+path, strings.NewReader(body))
		if err != nil {
			c.t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer admin")
		request.Header.Set("Content-Type", "application/json")
		if method == http.MethodPatch {
			request.Header.Set("Content-Type", "application/merge-patch+json")
		}
		answer, err := c.http.Do(request)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode < 300 {
				return
			}
			err = errors.New(answer.Status)
		}
		select {
		case <-tick.C:
		case <-late.C:
			c.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

const pods = "/apis/example.com/v1/namespaces/shop/pods"

func pod(name, phase string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Pod","metadata":{"name":%q,"namespace":"shop"},"status":{"phase":%q}}`, name, phase)
}

// TestPods: the page, what exists, and each change.
func TestPods(t *testing.T) {
	c := newCluster(t)
	c.await(http.MethodPost, pods, pod("cart", "Pending"))
	address := realserver.FreeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, address, c.kubeconfig, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "pods"})
	}()
	answer := get(t, "http://"+address+"/")
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		t.Errorf("the page is %s, %s", answer.Status, answer.Header.Get("Content-Type"))
	}
	events := get(t, "http://"+address+"/v1/watches/pods/events?fields=metadata.name,status.phase")
	defer events.Body.Close()
	lines := bufio.NewScanner(events.Body)
	want := func(kind, key, phase string) {
		t.Helper()
		for lines.Scan() {
			var e struct {
				Key   string
				Value struct{ Status struct{ Phase string } }
			}
			event, ok := strings.CutPrefix(lines.Text(), "event: ")
			if !ok || event != kind {
				continue
			}
			for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
			}
			if err := json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &e); err != nil || e.Key != key || e.Value.Status.Phase != phase {
				t.Fatalf("%s: %s, %v; want %s with the phase %q", kind, lines.Text(), err, key, phase)
			}
			return
		}
		t.Fatalf("the stream ended before %s of %s: %v", kind, key, lines.Err())
	}
	want("upsert", "shop/cart", "Pending")
	c.await(http.MethodPatch, pods+"/cart", `{"status":{"phase":"Running"}}`)
	want("upsert", "shop/cart", "Running")
	c.await(http.MethodDelete, pods+"/cart", "")
	want("delete", "shop/cart", "")
	stop()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("it ended with %v", err)
	}
}

// get makes a request until there is an answer.
func get(t *testing.T, url string) *http.Response {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := http.Get(url)
		if err == nil {
			return answer
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(err)
		}
	}
}
