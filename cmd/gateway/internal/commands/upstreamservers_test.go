//go:build servers

package commands

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// started starts one of the real servers, which ends with the test.
func started(t *testing.T, program string) *realserver.Server {
	t.Helper()
	return realserver.Start(t, realserver.Build(t, program), "-listen", realserver.FreeAddress(t), "-data", t.TempDir())
}

// inTime returns a context that ends when a test has waited for long enough.
func inTime(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// withEtcd starts etcd, and returns its address and a function that writes keys.
func withEtcd(t *testing.T) (address string, put func(keys ...string)) {
	t.Helper()
	server, ctx := started(t, "etcd"), inTime(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return server.Addr(), func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			if _, err := client.Put(ctx, key, `"`+key+`"`); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// withNATS starts NATS, and returns its address and a function that makes a bucket with keys.
func withNATS(t *testing.T) (address string, fill func(bucket string, keys ...string)) {
	t.Helper()
	server, ctx := started(t, "nats"), inTime(t)
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
	return server.Addr(), func(name string, keys ...string) {
		t.Helper()
		bucket, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if _, err := bucket.Put(ctx, key, []byte(`"`+key+`"`)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
