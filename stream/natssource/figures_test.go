package natssource

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/watchtide/watchtide/stream/streamtest/figures"
)

// BenchmarkUpstream measures the source beside the client library alone: see
// package figures.
func BenchmarkUpstream(b *testing.B) {
	s := ownServer(b)
	h := newClient(b, s.Addr()).bucket(jetstream.KeyValueConfig{Bucket: "figures"})
	source, err := New(Config{URL: "nats://" + s.Addr(), Bucket: h.config.Bucket})
	if err != nil {
		b.Fatal(err)
	}
	figures.Run(b, figures.Rig{
		Source: source,
		Load: func(_ context.Context, n int, value []byte) error {
			h.fill(n, func(int) string { return string(value) })
			return nil
		},
		Put: func(ctx context.Context, i int, value []byte) error {
			_, err := h.Put(ctx, fmt.Sprint("k", i), value) // as fill calls them
			return err
		},
		Raw: func(ctx context.Context, primed func(), changed func([]byte)) error {
			return followRaw(ctx, s.Addr(), h.config.Bucket, primed, changed)
		},
	})
}

// followRaw is what a program does that has only the library.
func followRaw(ctx context.Context, address, bucket string, primed func(), changed func(value []byte)) error {
	closed := make(chan struct{})
	conn, err := nats.Connect("nats://"+address, nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		return err
	}
	defer func() { conn.Close(); <-closed }()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	kv, err := js.KeyValue(ctx, bucket)
	if err != nil {
		return err
	}
	watcher, err := kv.WatchAll(ctx)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	values := map[string][]byte{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-watcher.Updates():
			if e == nil { // everything that there was
				primed()
				continue
			}
			values[e.Key()] = e.Value()
			changed(e.Value())
		}
	}
}
