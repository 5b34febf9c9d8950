package gateway

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"
)

// benchmarkHTTP2Stream is benchmarkStream for HTTP/2 over TLS, with so many streams on each connection. The clients have opened all windows, and read without looking.
func benchmarkHTTP2Stream(b *testing.B, pump Pump, secure *tls.Config, roots *x509.CertPool, streams int) {
	const n, events = 3000, 50
	address, source := idleGateway(b, pump, secure)
	revision := uint64(1)
	for b.Loop() {
		heap, stack, goroutines := inUse()
		before := processorTime(b)
		var clients []int
		for range n / streams {
			clients = append(clients, idleHTTP2Client(b, address, roots, streams))
		}
		b.ReportMetric(float64((processorTime(b)-before).Microseconds())/n, "CPU-µs/connect")
		moreHeap, moreStack, moreGoroutines := inUse()
		b.ReportMetric(float64(moreHeap-heap)/n/1024, "heap-KiB/stream")
		b.ReportMetric(float64(moreStack-stack)/n/1024, "stack-KiB/stream")
		b.ReportMetric(float64(moreGoroutines-goroutines)/n, "goroutines/stream")
		const size = 200
		value := `"` + strings.Repeat("x", size) + `"`
		drain(b, clients)
		before = processorTime(b)
		for range events {
			revision++
			source.Steps <- func(s stream.Sink) error {
				return errors.Join(s.Upsert(gatewaytest.Resource("k", revision, value)), s.Commit(revision))
			}
			for got := 0; got < n*size; {
				got += drain(b, clients)
				runtime.Gosched()
			}
		}
		b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/1e3/events/n, "CPU-µs/event")
		for _, fd := range clients {
			unix.Close(fd)
		}
	}
}

// drained is where nothing is copied to: only its length counts.
var drained = make([]byte, 1<<20)

// drain drops what sockets have received, without copying it, and returns how many bytes that were.
func drain(b *testing.B, sockets []int) (sum int) {
	for _, fd := range sockets {
		for {
			n, _, err := unix.Recvfrom(fd, drained, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			if err != nil || n == 0 {
				b.Fatalf("%d bytes, %v", n, err)
			}
			sum += n
		}
	}
	return sum
}

// idleHTTP2Client opens a connection with streams, and returns the rest of its client.
func idleHTTP2Client(b *testing.B, address string, roots *x509.CertPool, streams int) (fd int) {
	tcp, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	c := tls.Client(tcp, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}})
	var request bytes.Buffer
	request.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&request, c)
	err = errors.Join(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1}), f.WriteSettingsAck(), f.WriteWindowUpdate(0, 1<<31-1<<16))
	for i := range streams {
		var fields bytes.Buffer
		e := hpack.NewEncoder(&fields)
		for _, one := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: address}, {Name: ":path", Value: "/v1/events?watch=a"}, {Name: "accept", Value: "text/event-stream"}} {
			err = errors.Join(err, e.WriteField(one))
		}
		err = errors.Join(err, f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: fields.Bytes(), EndStream: true, EndHeaders: true}))
	}
	if _, failed := c.Write(request.Bytes()); err != nil || failed != nil {
		b.Fatal(err, failed)
	}
	texts := map[uint32][]byte{}
	for ready := 0; ready < streams; {
		frame, err := f.ReadFrame()
		if err != nil {
			b.Fatal(err)
		}
		if data, is := frame.(*http2.DataFrame); is {
			if texts[data.StreamID] = append(texts[data.StreamID], data.Data()...); bytes.Contains(texts[data.StreamID], []byte("event: end_of_snapshot")) {
				ready++
				texts[data.StreamID] = nil
			}
		}
	}
	raw, err := tcp.(*net.TCPConn).SyscallConn()
	if err != nil {
		b.Fatal(err)
	}
	var failed error
	err = errors.Join(raw.Control(func(old uintptr) { fd, failed = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }), failed, tcp.Close())
	if err != nil {
		b.Fatal(err)
	}
	return fd
}
