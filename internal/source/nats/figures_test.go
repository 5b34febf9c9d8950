//go:build servers

package nats

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/streamtest/figures"
)

// BenchmarkUpstream compares the source with the library's own watcher.
func BenchmarkUpstream(b *testing.B) {
	s := ownServer(b)
	bucket := newClient(b, s.Addr()).bucket(jetstream.KeyValueConfig{Bucket: "figures"})
	figures.Run(b, figures.Rig{
		Source: source(b, s.Addr(), "figures", func(c *Config) { c.StallAfter, c.PollInterval = 0, 0 }),
		Load: func(_ context.Context, n int, value []byte) error {
			bucket.fill(n, func(int) string { return string(value) })
			return nil
		},
		Put: func(ctx context.Context, i int, value []byte) error {
			_, err := bucket.Put(ctx, fmt.Sprint("k", i), value)
			return err
		},
		Raw: func(ctx context.Context, primed func(), changed func([]byte)) error {
			return followRaw(ctx, s.Addr(), primed, changed)
		},
	})
}

// followRaw is a program that uses only the library.
func followRaw(ctx context.Context, address string, primed func(), changed func(value []byte)) error {
	conn, err := nats.Connect("nats://" + address)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	kv, err := js.KeyValue(ctx, "figures")
	if err != nil {
		return err
	}
	w, err := kv.WatchAll(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	return readRaw(ctx, w, primed, changed)
}

func readRaw(ctx context.Context, w jetstream.KeyWatcher, primed func(), changed func(value []byte)) error {
	values, live := map[string][]byte{}, false
	for {
		select {
		case e := <-w.Updates():
			if e == nil {
				live = true
				primed()
				continue
			}
			if values[e.Key()] = e.Value(); live {
				changed(e.Value())
			}
		case <-ctx.Done():
			return nil
		}
	}
}
