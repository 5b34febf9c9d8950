package kubesource

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/streamtest"
	"github.com/watchtide/watchtide/stream/streamtest/faultproxy"
)

// The suite writes values of any JSON and wants them back byte for byte. In
// Kubernetes they are part of an object, which the server writes in its own way.
// So they stand in the object as text, and are taken out of it on their way to
// the suite. What becomes of the rest of an object, the other tests show.

// unwrapped is a source whose values are the texts in the objects.
type unwrapped struct{ stream.Source }

func (u unwrapped) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	return u.Source.Watch(ctx, resume, unwrappedSink{sink})
}

type unwrappedSink struct{ stream.Sink }

func (u unwrappedSink) Upsert(r stream.Resource) error {
	var object struct {
		Spec struct{ Text string }
	}
	if err := json.Unmarshal(r.Value, &object); err != nil {
		return err
	}
	r.Value = []byte(object.Spec.Text)
	return u.Sink.Upsert(r)
}

func wrapped(value string) string {
	quoted, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return `{"text":` + string(quoted) + `}`
}

// legalName is what Kubernetes takes as a name, the longest and the oddest too.
func legalName(i int) string {
	return fmt.Sprintf([]string{"plain%d", "with-dash-%d", "with.dots.%d", "0digit%d", "x--y%d", "a%d"}[i%6], i)
}

func TestConformance(t *testing.T) {
	for _, namespaced := range []bool{true, false} {
		t.Run(fmt.Sprintf("namespaced=%v", namespaced), func(t *testing.T) {
			c := ownCluster(t)
			streamtest.RunConformance(t, func(t *testing.T) *streamtest.Harness {
				return harness(t, c, namespaced)
			})
		})
	}
}

func harness(t *testing.T, c *cluster, namespaced bool) *streamtest.Harness {
	here := *c
	here.t = t
	k := here.kind(namespaced)
	proxy := faultproxy.New(t, c.server.Addr())
	key := func(i int) string { return legalName(i) }
	split := func(key string) (namespace, name string) { return "", key }
	if namespaced {
		key = func(i int) string { return fmt.Sprintf("space%d/%s", i%2, legalName(i)) }
		split = func(key string) (namespace, name string) {
			return filepath.Dir(key), filepath.Base(key)
		}
	}
	return &streamtest.Harness{
		Source: unwrapped{mustNew(t, k.configAt(proxy.Addr()))},
		Key:    key,
		Put: func(key, value string) error {
			namespace, name := split(key)
			return k.put(namespace, name, wrapped(value))
		},
		Delete:     func(key string) error { return k.delete(split(key)) },
		Disconnect: proxy.Cut,
		Restart:    func() { k.restart() },
		Restore:    k.wipe,
		Resumes:    true,
	}
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
