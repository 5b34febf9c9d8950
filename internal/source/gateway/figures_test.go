package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/r3labs/sse/v2"
	"github.com/watchtide/watchtide/gateway"
	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
	"github.com/watchtide/watchtide/internal/streamtest/figures"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
)

// BenchmarkUpstream measures the source beside the r3labs client alone: see
// package figures. The gateway that both follow runs in this process, and shares
// its processors and its memory.
func BenchmarkUpstream(b *testing.B) {
	writer, url := storeServed(b)
	u, err := gatewaysource.New(gatewaysource.Config{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	s, err := u.Source("notes", nil)
	if err != nil {
		b.Fatal(err)
	}
	figures.Run(b, figures.Rig{
		Source: s,
		Put: func(ctx context.Context, i int, value []byte) error {
			_, _, err := writer.Put(ctx, stream.PutRequest{Key: fmt.Sprintf("key-%06d", i), Value: value})
			return err
		},
		Raw: func(ctx context.Context, primed func(), changed func([]byte)) error {
			return followRaw(ctx, url, primed, changed)
		},
	})
}

// storeServed is a gateway with a writable watch.
func storeServed(b *testing.B) (writer stream.Writer, url string) {
	b.Helper()
	notes := store.New(store.Config{})
	writer = notes.Writer("notes")
	r := watch.NewRegistry()
	b.Cleanup(r.Close)
	if _, err := r.Add(watch.Config{Name: "notes", Source: notes.Source("notes")}); err != nil {
		b.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{Registry: r, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(g.Handler())
	b.Cleanup(server.Close)
	return writer, server.URL
}

// followRaw is a program that uses only the library.
func followRaw(ctx context.Context, url string, primed func(), changed func(value []byte)) error {
	client := sse.NewClient(url + "/v1/events?watch=notes")
	client.ReconnectStrategy = once{}
	values := map[string]json.RawMessage{}
	var failed error
	err := client.SubscribeRawWithContext(ctx, func(e *sse.Event) {
		switch string(e.Event) {
		case "end_of_snapshot":
			primed()
		case "upsert":
			var r struct {
				Key   string
				Value json.RawMessage
			}
			if err := json.Unmarshal(e.Data, &r); err != nil {
				failed = err
				return
			}
			values[r.Key] = r.Value
			changed(r.Value)
		}
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed != nil:
		return failed
	}
	return err
}
