//go:build servers

package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pool holds unused resources of the shared cluster: the server takes two seconds
// to serve a new one, and no longer for many.
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
	default: // the tests are run repeatedly
		return c.kind(true)
	}
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

// declare creates the definition, and waits until objects can be created.
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

// put creates or changes an object, and returns the server's version of it.
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
		Objects:    Objects{Group: k.group, Version: "v1", Resource: k.plural},
		StallAfter: 2 * time.Second,
	}
}

// in is the same resource for a subtest of the test that made it.
func (k *kind) in(t testing.TB) *kind {
	inner, here := *k, *k.cluster
	here.t = t
	inner.cluster = &here
	return &inner
}

// wipe restarts the server with an empty etcd, and declares the resource.
func (k *kind) wipe() {
	k.t.Helper()
	k.server.Kill()
	if err := os.RemoveAll(filepath.Join(k.data(), "etcd")); err != nil {
		k.t.Fatal(err)
	}
	k.restart()
	k.declare()
}

// restore restarts the server with the data of a backup, and waits until the
// resource is served.
func (k *kind) restore(backup string) {
	k.t.Helper()
	k.server.Kill()
	data := filepath.Join(k.data(), "etcd")
	if err := os.RemoveAll(data); err != nil {
		k.t.Fatal(err)
	}
	if err := os.CopyFS(data, os.DirFS(backup)); err != nil {
		k.t.Fatal(err)
	}
	k.restart()
	k.await("the resource", func() bool {
		_, code, err := k.try(http.MethodGet, k.collection(""), "")
		return err == nil && code == http.StatusOK
	})
}
