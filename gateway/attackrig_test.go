package gateway

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// framed is a client that writes HTTP/2 frames itself, valid or not.
type framed struct {
	net.Conn
	t *testing.T
	*http2.Framer

	next   uint32 // stream
	blocks bytes.Buffer
	hpack  *hpack.Encoder

	mu      sync.Mutex // guards the following fields
	headers map[uint32][]hpack.HeaderField
	ended   map[uint32]http2.ErrCode // and the reason, once ended
	data    int
	closed  bool
}

// newFramed begins an HTTP/2 connection with the client's own settings, and reads
// everything that arrives.
func newFramed(t *testing.T, c net.Conn, settings ...http2.Setting) *framed {
	t.Helper()
	f := &framed{
		Conn: c, t: t, Framer: http2.NewFramer(c, c), next: 1,
		headers: map[uint32][]hpack.HeaderField{}, ended: map[uint32]http2.ErrCode{},
	}
	f.hpack = hpack.NewEncoder(&f.blocks)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	read := make(chan struct{})
	go func() {
		defer close(read)
		f.read()
	}()
	t.Cleanup(func() { c.Close(); <-read })
	_, err := c.Write([]byte(http2.ClientPreface))
	if err == nil {
		err = f.WriteSettings(settings...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *framed) read() {
	for {
		frame, err := f.ReadFrame()
		f.mu.Lock()
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			f.headers[frame.StreamID] = append(f.headers[frame.StreamID], frame.Fields...)
			if frame.StreamEnded() {
				f.ended[frame.StreamID] = http2.ErrCodeNo
			}
		case *http2.DataFrame:
			f.data += len(frame.Data())
			if frame.StreamEnded() {
				f.ended[frame.StreamID] = http2.ErrCodeNo
			}
		case *http2.RSTStreamFrame:
			f.ended[frame.StreamID] = frame.ErrCode
		}
		f.closed = err != nil
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// open sends the head of a request; end ends the request with it. The fields are
// "name: value".
func (f *framed) open(method, path string, end bool, fields ...string) uint32 {
	f.t.Helper()
	f.blocks.Reset()
	for _, h := range append([]string{":method: " + method, ":scheme: http", ":authority: localhost", ":path: " + path}, fields...) {
		i := 1 + strings.Index(h[1:], ": ")
		if err := f.hpack.WriteField(hpack.HeaderField{Name: h[:i], Value: h[i+2:]}); err != nil {
			f.t.Fatal(err)
		}
	}
	id := f.next
	f.next += 2
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.blocks.Bytes(), EndStream: end, EndHeaders: true})
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// call begins a gRPC call.
func (f *framed) call(method string) uint32 {
	return f.open("POST", "/watchtide.v1.WatchService/"+method, false, "content-type: application/grpc", "te: trailers")
}

// field returns a field of the header or the trailers of an answer.
func (f *framed) field(stream uint32, name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.headers[stream] {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// hasEnded reports whether a stream has ended, and how.
func (f *framed) hasEnded(stream uint32) (bool, http2.ErrCode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	code, ended := f.ended[stream]
	return ended, code
}

// received returns how many bytes of data have come.
func (f *framed) received() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.data
}

// isClosed reports whether the server closed the connection.
func (f *framed) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}
