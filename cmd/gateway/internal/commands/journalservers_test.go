//go:build servers

package commands

import (
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

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// upstream is a real server that a gateway with a journal follows.
type upstream struct {
	source, watch string // of the configuration
	put, remove   func(ctx context.Context, key string) error
	// below is what keys begin with.
	below string
	// resumes means that it goes on where a process has ended, so that clients resume after a kill too.
	resumes bool
}

func etcdToKeep(t *testing.T) upstream {
	server := started(t, "etcd")
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return upstream{
		source: fmt.Sprintf("{ type: etcd, endpoints: [%q] }", server.Addr()), watch: `prefix: "/k/"`, resumes: true,
		put: func(ctx context.Context, key string) error {
			_, err := client.Put(ctx, "/k/"+key, "1")
			return err
		},
		remove: func(ctx context.Context, key string) error {
			_, err := client.Delete(ctx, "/k/"+key)
			return err
		},
	}
}

func natsToKeep(t *testing.T) upstream {
	server := started(t, "nats")
	conn, err := nats.Connect("nats://" + server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	conn.SetClosedHandler(func(*nats.Conn) { close(closed) })
	t.Cleanup(func() { conn.Close(); <-closed })
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := js.CreateKeyValue(inTime(t), jetstream.KeyValueConfig{Bucket: "k"})
	if err != nil {
		t.Fatal(err)
	}
	return upstream{
		source: fmt.Sprintf("{ type: nats, url: %q }", "nats://"+server.Addr()), watch: "bucket: k", resumes: true,
		put: func(ctx context.Context, key string) error {
			_, err := bucket.Put(ctx, key, []byte("1"))
			return err
		},
		remove: func(ctx context.Context, key string) error { return bucket.Purge(ctx, key) },
	}
}

const keptObjects = "/apis/example.com/v1/keeps"

func kubernetesToKeep(t *testing.T) upstream {
	server := started(t, "kubernetes")
	authority := server.Fields()[0]
	pem, err := os.ReadFile(authority)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	do := func(ctx context.Context, method, path, body string) error {
		r, err := http.NewRequestWithContext(ctx, method, "https://"+server.Addr()+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer admin")
		r.Header.Set("Content-Type", "application/json")
		answer, err := transport.RoundTrip(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode >= 300 {
			return fmt.Errorf("%s %s: %d %s %w", method, path, answer.StatusCode, text, err)
		}
		return nil
	}
	object := func(key string) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Keep","metadata":{"name":%q}}`, key)
	}
	ctx := inTime(t)
	if err := do(ctx, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"apiVersion":"apiextensions.k8s.io/v1",
		"kind":"CustomResourceDefinition","metadata":{"name":"keeps.example.com"},"spec":{"group":"example.com","scope":"Cluster",
		"names":{"plural":"keeps","singular":"keep","kind":"Keep","listKind":"KeepList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":
		{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`); err != nil {
		t.Fatal(err)
	}
	for err := do(ctx, "POST", keptObjects+"?dryRun=All", object("probe")); err != nil; err = do(ctx, "POST", keptObjects+"?dryRun=All", object("probe")) {
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	config := file(t, "kubeconfig", fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: somebody, user: {token: admin}}]
contexts: [{name: this, context: {cluster: here, user: somebody}}]
current-context: this
`, server.Addr(), authority))
	return upstream{
		source: fmt.Sprintf("{ type: kubernetes, kubeconfig: %q }", config), watch: "group: example.com, version: v1, resource: keeps", resumes: true,
		put:    func(ctx context.Context, key string) error { return do(ctx, "POST", keptObjects, object(key)) },
		remove: func(ctx context.Context, key string) error { return do(ctx, "DELETE", keptObjects+"/"+key, "") },
	}
}

func consulToKeep(t *testing.T) upstream {
	server := realserver.Start(t, realserver.Build(t, "consulresource"), "-listen", realserver.FreeAddress(t))
	conn, err := grpc.NewClient(server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := pbresource.NewResourceServiceClient(conn)
	id := func(key string) *pbresource.ID {
		return &pbresource.ID{Name: key, Type: &pbresource.Type{Group: "demo", GroupVersion: "v2", Kind: "Artist"}, Tenancy: &pbresource.Tenancy{}}
	}
	return upstream{
		source: fmt.Sprintf("{ type: consul, address: %q }", server.Addr()), watch: "resource_type: demo.v2.Artist", below: "default/default/",
		put: func(ctx context.Context, key string) error {
			_, err := client.Write(ctx, &pbresource.WriteRequest{Resource: &pbresource.Resource{
				Id: id(key), Data: &anypb.Any{TypeUrl: "type.googleapis.com/hashicorp.consul.internal.demo.v2.Artist", Value: []byte("\n\x01x")},
			}})
			return err
		},
		remove: func(ctx context.Context, key string) error {
			_, err := client.Delete(ctx, &pbresource.DeleteRequest{Id: id(key)})
			return err
		},
	}
}

func (u *upstream) change(t *testing.T, put, remove string) {
	t.Helper()
	for _, err := range []error{u.put(inTime(t), put), u.remove(inTime(t), remove)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// wantNoSnapshot fails if the gateway at an operations address was sent a snapshot, except where the upstream cannot
// resume.
func (u *upstream) wantNoSnapshot(t *testing.T, what, operations string) {
	t.Helper()
	_, metrics := fetch(t, http.DefaultTransport, "GET", "http://"+operations+"/metrics", "")
	none := true
	for _, reason := range []string{"initial", "reconnect", "epoch_changed"} {
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, "watchtide_upstream_resyncs_total") && strings.Contains(line, reason) && !strings.HasSuffix(line, " 0\n") {
				none = false
			}
		}
	}
	if u.resumes && !none {
		t.Errorf("%s: the upstream has sent a snapshot", what)
	}
}

// TestJournalOfRealServers: whatever the upstream remembers, a client that does not verify resumes after an orderly
// restart. After a kill, it does if the upstream goes on where the process had ended.
func TestJournalOfRealServers(t *testing.T) {
	for name, start := range map[string]func(*testing.T) upstream{"etcd": etcdToKeep, "nats": natsToKeep, "kubernetes": kubernetesToKeep, "consul": consulToKeep, "postgres": postgresToKeep} {
		t.Run(name, func(t *testing.T) {
			u := start(t)
			for _, key := range []string{"a", "b", "c"} {
				if err := u.put(inTime(t), key); err != nil {
					t.Fatal(err)
				}
			}
			config := file(t, "gateway.yaml", fmt.Sprintf(`
state: { dir: %q }
sources: { s: %s }
watches: { kept: { source: s, %s } }
`, filepath.Join(t.TempDir(), "state"), u.source, u.watch))
			g := serve(t, "--config", config)
			g.logs.await(t, `"state":"in_sync"`)
			_, id := read(t, g.http, "kept", "")
			g.interrupt()
			u.change(t, "d", "b")

			g = serve(t, "--config", config)
			g.logs.await(t, `"state":"in_sync"`)
			events, next := read(t, g.http, "kept", id)
			wantEvents(t, "after an orderly restart", events, "delete "+u.below+"b", "upsert "+u.below+"d")
			u.wantNoSnapshot(t, "after an orderly restart", g.operations)
			g.interrupt() // the newest change is a delete
			id = next
			u.change(t, "f", "d")

			c, logs := asProcess(t, "serve", "--config", config, "--http", "127.0.0.1:0", "--operations", "127.0.0.1:0")
			logs.await(t, `"state":"in_sync"`)
			at := func(what string) string {
				_, after, _ := strings.Cut(logs.await(t, `"msg":"listening"`), `"`+what+`":"`)
				address, _, _ := strings.Cut(after, `"`)
				return address
			}
			address := at("http")
			events, _ = read(t, address, "kept", id)
			if len(events) == 3 && events[0] == "delete "+u.below+"b" { // deletes that may have no revision are repeated
				events = events[1:]
			}
			wantEvents(t, "after another restart", events, "delete "+u.below+"d", "upsert "+u.below+"f")
			u.wantNoSnapshot(t, "after another restart", at("operations"))
			_, id = read(t, address, "kept", "")
			_ = c.Process.Kill()
			_ = c.Wait()
			u.change(t, "e", "a")

			g = serve(t, "--config", config)
			g.logs.await(t, `"state":"in_sync"`)
			events, _ = read(t, g.http, "kept", id)
			if u.wantNoSnapshot(t, "after a kill", g.operations); u.resumes {
				if name == "nats" && len(events) == 3 { // deletes that may have no revision are repeated
					events = events[1:]
				}
				wantEvents(t, "after a kill", events, "delete a", "upsert e")
			} else if len(events) != 4 || !strings.HasPrefix(events[0], "reset ") {
				t.Errorf("after a kill: %q, want a reset and three resources", events)
			}
		})
	}
}
