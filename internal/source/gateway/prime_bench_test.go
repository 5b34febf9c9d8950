package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/r3labs/sse/v2"
	"github.com/watchtide/watchtide/gateway"
	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

const (
	benchResources = 100_000
	benchBytes     = 300
)

// many is a source of resources that never change.
func many(n int) stream.Source {
	return stream.SourceFunc(func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		if err := sink.Reset("bench"); err != nil {
			return err
		}
		value := []byte(`{"text":"` + strings.Repeat("x", benchBytes-11) + `"}`)
		for i := range n {
			r := stream.Resource{Key: fmt.Sprintf("key-%06d", i), Revision: uint64(i + 1), Value: value}
			if err := sink.Upsert(r); err != nil {
				return err
			}
		}
		if err := sink.Commit(uint64(n)); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
}

// manyServed is a gateway that has them.
func manyServed(b *testing.B) (url string) {
	b.Helper()
	r := watch.NewRegistry()
	b.Cleanup(r.Close)
	w, err := r.Add(watch.Config{Name: "w", Source: many(benchResources)})
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Prime(b.Context()); err != nil {
		b.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{Registry: r, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(g.Handler())
	b.Cleanup(server.Close)
	return server.URL
}

// BenchmarkPrime is a watch that follows a gateway, from nothing to primed.
func BenchmarkPrime(b *testing.B) {
	u, err := gatewaysource.New(gatewaysource.Config{URL: manyServed(b)})
	if err != nil {
		b.Fatal(err)
	}
	s, err := u.Source("w", nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r := watch.NewRegistry()
		w, err := r.Add(watch.Config{Name: "w", Source: s})
		if err != nil {
			b.Fatal(err)
		}
		if err := w.Prime(b.Context()); err != nil || w.Snapshot().Count() != benchResources {
			b.Fatalf("%d resources, %v", w.Snapshot().Count(), err)
		}
		r.Close()
	}
}

// BenchmarkRawClient reads the same with the r3labs client alone, which only
// counts events.
func BenchmarkRawClient(b *testing.B) {
	url := manyServed(b) + "/v1/events?watch=w&until=end_of_snapshot"
	for b.Loop() {
		events := 0
		client := sse.NewClient(url)
		client.ReconnectStrategy = once{}
		_ = client.SubscribeRawWithContext(b.Context(), func(*sse.Event) { events++ })
		if events < benchResources {
			b.Fatalf("%d events", events)
		}
	}
}

type once struct{}

func (once) NextBackOff() (stop time.Duration) { return -1 }
func (once) Reset()                            {}

// BenchmarkRawBytes reads the same without parsing it.
func BenchmarkRawBytes(b *testing.B) {
	url := manyServed(b) + "/v1/events?watch=w&until=end_of_snapshot"
	for b.Loop() {
		response, err := http.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || n < benchResources*benchBytes {
			b.Fatalf("%d bytes, %v", n, err)
		}
	}
}
