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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
	"golang.org/x/sys/unix"
)

// BenchmarkStream measures the cost of a stream, of both pumps, in plain text, over TLS and over HTTP/2, with as many
// streams on each connection as a client may have and with one: the processor time to connect, that of the client included; over TLS that of a handshake
// without a gateway too, in turns with it, and the median of their ratios; the KiB of heap and stack of a stream that waits, after a collection; and the processor
// time of one event. The clients are nothing but descriptors, whose buffers take the events.
func BenchmarkStream(b *testing.B) {
	secure, roots := certificate(b)
	for _, pump := range []Pump{PumpShards, PumpGoroutines} {
		b.Run(string(pump)+"/plain", func(b *testing.B) { benchmarkStream(b, pump, nil, nil) })
		b.Run(string(pump)+"/TLS", func(b *testing.B) { benchmarkStream(b, pump, secure, roots) })
		b.Run(string(pump)+"/HTTP2", func(b *testing.B) { benchmarkHTTP2Stream(b, pump, secure, roots, netconn.MaxStreams) })
		b.Run(string(pump)+"/HTTP2-alone", func(b *testing.B) { benchmarkHTTP2Stream(b, pump, secure, roots, 1) })
	}
}

func benchmarkStream(b *testing.B, pump Pump, secure *tls.Config, roots *x509.CertPool) {
	const n, turn, events = 3000, 100, 50
	address, source := idleGateway(b, pump, secure)
	shakeHands := func(int) {}
	if secure != nil {
		shakeHands = handshakes(b, secure, roots)
	}
	revision := uint64(1)
	for b.Loop() {
		heap, stack, goroutines := inUse()
		var clients []int
		var connecting, shaking time.Duration
		var ratios []float64
		for range n / turn {
			before := processorTime(b)
			shakeHands(turn)
			between := processorTime(b)
			for range turn {
				clients = append(clients, idleClient(b, address, roots))
			}
			after := processorTime(b)
			connecting, shaking = connecting+after-between, shaking+between-before
			ratios = append(ratios, float64(after-between)/float64(between-before))
		}
		b.ReportMetric(float64(connecting.Microseconds())/n, "CPU-µs/connect")
		if secure != nil {
			slices.Sort(ratios)
			b.ReportMetric(float64(shaking.Microseconds())/n, "CPU-µs/handshake")
			b.ReportMetric(ratios[len(ratios)/2], "handshakes/connect")
		}
		moreHeap, moreStack, moreGoroutines := inUse()
		b.ReportMetric(float64(moreHeap-heap)/n/1024, "heap-KiB/stream")
		b.ReportMetric(float64(moreStack-stack)/n/1024, "stack-KiB/stream")
		b.ReportMetric(float64(moreGoroutines-goroutines)/n, "goroutines/stream")
		const size = 200
		value := `"` + strings.Repeat("x", size) + `"`
		before := processorTime(b)
		for range events {
			revision++
			had := inBuffers(b, clients)
			source.Steps <- func(s stream.Sink) error {
				return errors.Join(s.Upsert(gatewaytest.Resource("k", revision, value)), s.Commit(revision))
			}
			for inBuffers(b, clients) < had+n*size {
				runtime.Gosched()
			}
		}
		b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/1e3/events/n, "CPU-µs/event")
		for _, fd := range clients {
			unix.Close(fd)
		}
	}
}

// handshakes returns a function that connects so many clients, one by one, to a server that does nothing but the
// handshake, and sends a byte.
func handshakes(b *testing.B, secure *tls.Config, roots *x509.CertPool) func(n int) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", secure)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Write([]byte("x"))
				_, _ = c.Read(make([]byte, 1))
			}()
		}
	}()
	return func(n int) {
		for range n {
			c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); err != nil {
				b.Fatal(err)
			}
			c.Close()
		}
	}
}

// inBuffers is how many bytes sockets have received that nobody has read.
func inBuffers(b *testing.B, sockets []int) (sum int) {
	for _, fd := range sockets {
		n, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return sum
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

// idleGateway serves one watch.
func idleGateway(b *testing.B, pump Pump, secure *tls.Config) (address string, source *gatewaytest.Script) {
	registry := watch.NewRegistry()
	source = gatewaytest.NewScript()
	w, err := registry.Add(watch.Config{Name: "a", Source: source})
	if err != nil {
		b.Fatal(err)
	}
	source.Steps <- func(s stream.Sink) error { return errors.Join(s.Reset("e1"), s.Commit(1)) }
	if err := w.Prime(b.Context()); err != nil {
		b.Fatal(err)
	}
	g, err := New(Config{Registry: registry, StreamSettings: StreamSettings{Pump: pump, DrainDelay: -1, Drain: -1}, Logger: slog.New(slog.DiscardHandler)})
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
	return listener.Addr().String(), source
}
