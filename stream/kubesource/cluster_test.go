package kubesource

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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream/streamtest/realserver"
)

// cluster is a real API server of custom resources, and a client of it that is
// not the one under test.
type cluster struct {
	t      testing.TB
	server *realserver.Server
	http   *http.Client
}

// sharedCluster returns the server that tests use which break nothing.
func sharedCluster(t testing.TB) *cluster {
	return clusterOf(t, realserver.Shared(t, realserver.Build(t, "kubernetes")))
}

// pool holds resources of the shared cluster that nobody has used yet: the server
// takes two seconds to serve a new one, and no longer for many.
var pool struct {
	once sync.Once
	free chan *kind
}

// sharedKind returns a namespaced resource of the shared cluster, for one test.
func sharedKind(t testing.TB) *kind {
	t.Helper()
	c := sharedCluster(t)
	pool.once.Do(func() {
		const many = 24
		pool.free = make(chan *kind, many)
		var wg sync.WaitGroup
		for range many {
			wg.Go(func() { pool.free <- c.kind(true) })
		}
		wg.Wait()
	})
	select {
	case k := <-pool.free:
		return &kind{cluster: c, group: k.group, plural: k.plural, namespaced: true}
	default: // the tests are run again and again
		return c.kind(true)
	}
}

// ownCluster starts a server on a port and with data that a restart finds again.
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

// data is the folder that the server works in.
func (c *cluster) data() string { return filepath.Dir(filepath.Dir(c.certificate())) }

// kubeconfig writes a file for a user, who reaches the server at address.
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

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

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

// kind is a custom resource of one test.
type kind struct {
	*cluster
	group, plural string
	namespaced    bool
}

// kinds makes names that no other test of the process has.
var kinds atomic.Int64

// kind declares a custom resource, namespaced or not, and waits for it.
func (c *cluster) kind(namespaced bool) *kind {
	c.t.Helper()
	k := &kind{cluster: c, group: "example.com", plural: fmt.Sprintf("widgets%d", kinds.Add(1)), namespaced: namespaced}
	k.declare()
	return k
}

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// declare makes the definition, and waits until objects can be made.
func (k *kind) declare() {
	k.t.Helper()
	scope := "Cluster"
	if k.namespaced {
		scope = "Namespaced"
	}
	k.do(http.MethodPost, definitions, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"%[1]s.%[2]s"},"spec":{"group":%[2]q,"scope":%[3]q,
		"names":{"plural":%[1]q,"singular":"one%[1]s","kind":"Kind%[1]s","listKind":"Kind%[1]sList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":
		{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`, k.plural, k.group, scope))
	k.await("the resource", func() bool {
		_, code, err := k.try(http.MethodPost, k.collection("default")+"?dryRun=All", k.json("default", "probe", `1`))
		return err == nil && code == http.StatusCreated
	})
}

// await asks until it is so.
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

// remove deletes the definition, and waits until it is gone.
func (k *kind) remove() {
	k.t.Helper()
	path := definitions + "/" + k.plural + "." + k.group
	k.do(http.MethodDelete, path, "")
	k.await("the end of the resource", func() bool {
		_, code, err := k.try(http.MethodGet, path, "")
		return err == nil && code == http.StatusNotFound
	})
}

func (k *kind) collection(namespace string) string {
	path := "/apis/" + k.group + "/v1"
	if k.namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + k.plural
}

// json is an object. The spec is any JSON.
func (k *kind) json(namespace, name, spec string) string {
	if k.namespaced {
		namespace = fmt.Sprintf(`"namespace":%q,`, namespace)
	} else {
		namespace = ""
	}
	return fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Kind%s","metadata":{%s"name":%q,"labels":{"name":%q}},"spec":%s}`,
		k.group, k.plural, namespace, name, name, spec)
}

// put creates or changes an object, and returns what the server made of it.
func (k *kind) put(ctx context.Context, namespace, name, spec string) (answer string, err error) {
	answer, code, err := k.tryWithin(ctx, http.MethodPost, k.collection(namespace), k.json(namespace, name, spec))
	if err == nil && code == http.StatusConflict {
		answer, code, err = k.tryWithin(ctx, http.MethodPatch, k.collection(namespace)+"/"+name, `{"spec":`+spec+`}`)
	}
	if err == nil && code >= 300 {
		err = fmt.Errorf("%d %s", code, answer)
	}
	return answer, err
}

func (k *kind) mustPut(namespace, name, spec string) {
	k.t.Helper()
	if _, err := k.put(k.t.Context(), namespace, name, spec); err != nil {
		k.t.Fatal(err)
	}
}

// delete deletes an object, which may be gone already.
func (k *kind) delete(ctx context.Context, namespace, name string) error {
	answer, code, err := k.tryWithin(ctx, http.MethodDelete, k.collection(namespace)+"/"+name, "")
	if err == nil && code >= 300 && code != http.StatusNotFound {
		err = fmt.Errorf("%d %s", code, answer)
	}
	return err
}

// clear deletes all objects.
func (k *kind) clear() {
	k.t.Helper()
	for _, namespace := range []string{"default", "space0", "space1"} {
		k.do(http.MethodDelete, k.collection(namespace), "")
	}
}

// fill makes n objects, several at a time.
func (k *kind) fill(n int) {
	k.t.Helper()
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make(chan error, 8)
	for range cap(errs) {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if _, err := k.put(k.t.Context(), "default", fmt.Sprintf("object-%05d", i), fmt.Sprintf(`{"n":%d}`, i)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		k.t.Fatal(<-errs)
	}
}

// config follows the resource, as admin, at the server's own address.
func (k *kind) config() Config {
	return k.configAt(k.server.Addr())
}

// configAt follows it at another address: a proxy's.
func (k *kind) configAt(address string) Config {
	return Config{
		Kubeconfig: k.kubeconfig(address, admin),
		Group:      k.group, Version: "v1", Resource: k.plural,
		StallAfter: 2 * time.Second,
	}
}

func mustNew(t testing.TB, c Config) *Source {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// in is the same resource for a test within the test that made it.
func (k *kind) in(t testing.TB) *kind {
	inner, here := *k, *k.cluster
	here.t = t
	inner.cluster = &here
	return &inner
}

// restart kills the server and starts it again.
func (c *cluster) restart() {
	c.t.Helper()
	if err := c.server.Restart(); err != nil {
		c.t.Fatal(err)
	}
}

// wipe starts the server again with an empty etcd, and declares the resource.
func (k *kind) wipe() {
	k.t.Helper()
	k.server.Kill()
	if err := os.RemoveAll(filepath.Join(k.data(), "etcd")); err != nil {
		k.t.Fatal(err)
	}
	k.restart()
	k.declare()
}

// backup returns a copy of etcd's data as they are now.
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

// restore starts the server again with the data of a backup.
func (c *cluster) restore(backup string) {
	c.t.Helper()
	c.server.Kill()
	data := filepath.Join(c.data(), "etcd")
	if err := os.RemoveAll(data); err != nil {
		c.t.Fatal(err)
	}
	if err := os.CopyFS(data, os.DirFS(backup)); err != nil {
		c.t.Fatal(err)
	}
	c.restart()
}
