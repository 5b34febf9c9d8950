//go:build servers

package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// server is shared by all tests that do not disrupt it.
func server(t testing.TB) *realserver.Server {
	t.Helper()
	return realserver.Shared(t, realserver.Build(t, "nats"))
}

// ownServer is a server that a test may kill, with its own port and data.
func ownServer(t testing.TB, args ...string) *realserver.Server {
	t.Helper()
	args = append([]string{"-listen", realserver.FreeAddress(t), "-data", t.TempDir()}, args...)
	return realserver.Start(t, realserver.Build(t, "nats"), args...)
}

// client is the writer's connection, which reconnects by itself.
type client struct {
	t    testing.TB
	conn *nats.Conn
	js   jetstream.JetStream
}

func newClient(t testing.TB, address string, options ...nats.Option) *client {
	t.Helper()
	options = append(options, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0))
	conn, err := nats.Connect("nats://"+address, options...)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	conn.SetClosedHandler(func(*nats.Conn) { close(closed) })
	t.Cleanup(func() {
		conn.Close()
		<-closed
	})
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t, conn, js}
}

// within is the time that one thing may take upstream.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// buckets counts the names that were used.
var buckets atomic.Int64

// bucketName is one that no other test has, nor the same test when it runs again.
func bucketName(t testing.TB) string {
	return fmt.Sprintf("%d-", buckets.Add(1)) + strings.Map(func(r rune) rune {
		if ValidBucket(string(r)) {
			return r
		}
		return '_'
	}, t.Name())
}

// handle is a writer's view of a bucket.
type handle struct {
	*client
	jetstream.KeyValue
	config jetstream.KeyValueConfig
}

// bucket makes a bucket; unset fields except the name have defaults.
func (c *client) bucket(config jetstream.KeyValueConfig) *handle {
	c.t.Helper()
	if config.Bucket == "" {
		config.Bucket = bucketName(c.t)
	}
	kv, err := c.js.CreateKeyValue(within(c.t), config)
	if err != nil {
		c.t.Fatal(err)
	}
	return &handle{client: c, KeyValue: kv, config: config}
}

// again deletes the bucket and recreates it.
func (h *handle) again() {
	h.t.Helper()
	if err := h.js.DeleteKeyValue(within(h.t), h.config.Bucket); err != nil {
		h.t.Fatal(err)
	}
	h.KeyValue = h.client.bucket(h.config).KeyValue
}

// put writes, also while the server restarts.
func (h *handle) put(key, value string) error {
	return h.insist(func(ctx context.Context) error {
		_, err := h.Put(ctx, key, []byte(value))
		return err
	})
}

// putRaw is put for keys that the library rejects and the server does not.
func (h *handle) putRaw(key, value string) error {
	return h.publish(&nats.Msg{Subject: "$KV." + h.config.Bucket + "." + key, Data: []byte(value)})
}

// removeRaw is remove for such keys.
func (h *handle) removeRaw(key string) error {
	return h.publish(&nats.Msg{Subject: "$KV." + h.config.Bucket + "." + key, Header: nats.Header{headerOperation: {"DEL"}}})
}

func (h *handle) publish(m *nats.Msg) error {
	return h.insist(func(ctx context.Context) error {
		_, err := h.js.PublishMsg(ctx, m)
		return err
	})
}

func (h *handle) remove(key string) error {
	return h.insist(func(ctx context.Context) error { return h.Delete(ctx, key) })
}

// insist retries operations that fail because the server is down.
func (h *handle) insist(do func(context.Context) error) error {
	for ctx := within(h.t); ; {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		err := do(attempt)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrNoResponders) &&
			!errors.Is(err, jetstream.ErrNoStreamResponse) && !errors.Is(err, jetstream.ErrJetStreamNotEnabled) && !errors.Is(err, nats.ErrDisconnected) {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (h *handle) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// patient lets a publisher wait for a busy server.
var patient = jetstream.WithStallWait(30 * time.Second)

// fill writes keys k0, k1, … many at a time.
func (h *handle) fill(n int, value func(i int) string) {
	h.t.Helper()
	for i := range n {
		_, err := h.js.PublishAsync(fmt.Sprintf("$KV.%s.k%d", h.config.Bucket, i), []byte(value(i)), patient)
		h.must(err)
	}
	select {
	case <-h.js.PublishAsyncComplete():
	case <-within(h.t).Done():
		h.t.Fatal("not everything was acknowledged")
	}
}

// source follows a bucket through an address.
func source(t testing.TB, address, bucket string, options ...func(*Config)) *Source {
	t.Helper()
	c := Config{URL: "nats://" + address, Bucket: bucket, StallAfter: 2 * time.Second, PollInterval: 200 * time.Millisecond}
	for _, o := range options {
		o(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
