package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"runtime"
	measure "runtime/metrics"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
	"golang.org/x/sys/unix"
)

// BenchmarkIdleStream measures the cost of a waiting stream of the goroutine pump:
// KiB of heap and stack after a collection, and goroutines. Its clients are nothing
// but descriptors.
func BenchmarkIdleStream(b *testing.B) {
	secure, roots := certificate(b)
	b.Run("plain", func(b *testing.B) { benchmarkIdle(b, nil, nil) })
	b.Run("TLS", func(b *testing.B) { benchmarkIdle(b, secure, roots) })
}

func benchmarkIdle(b *testing.B, secure *tls.Config, roots *x509.CertPool) {
	const n = 1000
	address := idleGateway(b, secure)
	for b.Loop() {
		heap, stack, goroutines := inUse()
		var clients []int
		for range n {
			clients = append(clients, idleClient(b, address, roots))
		}
		moreHeap, moreStack, moreGoroutines := inUse()
		b.ReportMetric(float64(moreHeap-heap)/n/1024, "heap-KiB/stream")
		b.ReportMetric(float64(moreStack-stack)/n/1024, "stack-KiB/stream")
		b.ReportMetric(float64(moreGoroutines-goroutines)/n, "goroutines/stream")
		for _, fd := range clients {
			unix.Close(fd)
		}
	}
}

// inUse returns the bytes and goroutines in use after collections: the first one
// frees memory, the second one the contents of pools, and both shrink stacks.
func inUse() (heap, stack, goroutines int64) {
	for range 3 {
		runtime.GC()
	}
	samples := []measure.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/sched/goroutines:goroutines"},
	}
	measure.Read(samples)
	return int64(samples[0].Value.Uint64()), int64(samples[1].Value.Uint64()), int64(samples[2].Value.Uint64())
}

// idleClient opens a stream, and returns the rest of its client.
func idleClient(b *testing.B, address string, roots *x509.CertPool) (fd int) {
	s := dialStream(b, address, roots, "")
	raw, err := s.tcp.SyscallConn()
	if err != nil {
		b.Fatal(err)
	}
	var failed error
	err = errors.Join(raw.Control(func(old uintptr) { fd, failed = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }), failed, s.tcp.Close())
	if err != nil {
		b.Fatal(err)
	}
	return fd
}

// idleGateway serves one watch through the goroutine pump.
func idleGateway(b *testing.B, secure *tls.Config) (address string) {
	registry := watch.NewRegistry()
	source := gatewaytest.NewScript()
	w, err := registry.Add(watch.Config{Name: "a", Source: source})
	if err != nil {
		b.Fatal(err)
	}
	source.Steps <- func(s stream.Sink) error { return errors.Join(s.Reset("e1"), s.Commit(1)) }
	if err := w.Prime(b.Context()); err != nil {
		b.Fatal(err)
	}
	g, err := New(Config{Registry: registry, StreamSettings: StreamSettings{Pump: PumpGoroutines, DrainDelay: -1, Drain: -1}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, Listeners{HTTP: listener, HTTPTLS: secure}) }()
	b.Cleanup(func() {
		stop()
		<-served
		registry.Close()
	})
	return listener.Addr().String()
}
