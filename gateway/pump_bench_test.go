package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// BenchmarkSnapshot measures a request for 100,000 resources of 300 bytes over
// loopback, up to the end of the body.
func BenchmarkSnapshot(b *testing.B) {
	const resources = 100_000
	all := make([]stream.Resource, resources)
	for i := range all {
		all[i] = gatewaytest.Resource(fmt.Sprintf("key-%06d", i), uint64(i+1), `"`+strings.Repeat("x", 298)+`"`)
	}
	address, _ := benchmarkGateway(b, resources, all...)
	for _, format := range []string{"sse", "ndjson"} {
		for _, encoding := range []string{"identity", "gzip"} {
			b.Run(format+"/"+encoding, func(b *testing.B) {
				path := "http://" + address + "/v1/events?watch=a&until=end_of_snapshot&format=" + format
				for b.Loop() {
					b.SetBytes(benchmarkBody(b, path, encoding))
				}
			})
		}
	}
}

// benchmarkBody reads a body as it is sent, and returns its length.
func benchmarkBody(b *testing.B, path, encoding string) int64 {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", encoding)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkLiveEvent measures the latency of one change from the source's commit
// to a client over loopback.
func BenchmarkLiveEvent(b *testing.B) {
	address, source := benchmarkGateway(b, 1)
	c, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, rawGet("/v1/events?watch=a")); err != nil {
		b.Fatal(err)
	}
	read := func(what string) {
		p, got := make([]byte, 4<<10), []byte(nil)
		for !bytes.Contains(got, []byte(what)) {
			n, err := c.Read(p)
			if err != nil {
				b.Fatal(err)
			}
			got = append(got, p[:n]...)
		}
	}
	read("end_of_snapshot\"")
	revision := uint64(1)
	for b.Loop() {
		revision++
		source.Steps <- func(s stream.Sink) error {
			return errors.Join(s.Upsert(gatewaytest.Resource("k", revision, fmt.Sprint(revision))), s.Commit(revision))
		}
		read(fmt.Sprintf("id: a@e1-%d\n", revision))
	}
}

func benchmarkGateway(b *testing.B, revision uint64, all ...stream.Resource) (address string, source *gatewaytest.Script) {
	b.Helper()
	registry := watch.NewRegistry()
	b.Cleanup(registry.Close)
	source = gatewaytest.NewScript()
	w, err := registry.Add(watch.Config{Name: "a", Source: source})
	if err != nil {
		b.Fatal(err)
	}
	source.Steps <- func(s stream.Sink) error {
		return errors.Join(s.Reset("e1"), gatewaytest.UpsertAll(s, all), s.Commit(revision))
	}
	if err := w.Prime(b.Context()); err != nil {
		b.Fatal(err)
	}
	g, err := New(Config{Registry: registry, StreamSettings: StreamSettings{Pump: pumpUnderTest(), DrainDelay: -1, Drain: -1}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, Listeners{HTTP: listener}) }()
	b.Cleanup(func() {
		stop()
		http.DefaultClient.CloseIdleConnections()
		<-served
	})
	return listener.Addr().String(), source
}
