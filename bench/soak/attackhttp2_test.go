//go:build servers

package soak

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// framed is a handmade HTTP/2 connection. Requests are written by one goroutine;
// another one reads.
type framed struct {
	*http2.Framer
	attacker *attacker
	ctx      context.Context
	head     bytes.Buffer
	encoder  *hpack.Encoder
	next     uint32 // id of the next stream
	ended    chan struct{}

	over int // streams that the gateway ended; owned by read until ended is closed
}

// framed opens a connection on which no answer may be longer than the window.
func (a *attacker) framed(ctx context.Context, address string, window uint32) *framed {
	c := a.connect(ctx, address)
	if c == nil {
		return nil
	}
	f := &framed{Framer: http2.NewFramer(c, c), attacker: a, ctx: ctx, next: 1, ended: make(chan struct{})}
	f.encoder = hpack.NewEncoder(&f.head)
	go f.read(c)
	c.Write([]byte(http2.ClientPreface))
	f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	return f
}

// read reads until the connection ends, and counts the streams that the gateway
// ended before that.
func (f *framed) read(c net.Conn) {
	defer close(f.ended)
	defer c.Close()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.RSTStreamFrame:
			f.over++
		case *http2.HeadersFrame:
			if frame.StreamEnded() {
				f.over++
			}
		case *http2.DataFrame:
			if frame.StreamEnded() {
				f.over++
			}
		}
	}
}

// request sends the head of a request; false: the connection is over.
func (f *framed) request(method, path string, end bool, fields ...string) (id uint32, ok bool) {
	f.head.Reset()
	f.fields(":method", method, ":scheme", "http", ":authority", f.attacker.http, ":path", path)
	f.fields(fields...)
	id = f.next
	f.next += 2
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.head.Bytes(), EndStream: end, EndHeaders: true})
	return id, err == nil
}

// fields encodes names and values, in turn.
func (f *framed) fields(fields ...string) {
	for i := 0; i+1 < len(fields); i += 2 {
		f.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // into memory: cannot fail
	}
}

// finish waits for the end of the attack, or of the connection, and records the
// outcome of the streams.
func (f *framed) finish() {
	<-f.ended
	f.attacker.note(cut(f.ctx))
	for range f.over {
		f.attacker.note("streams ended by the gateway")
	}
}

// closeWindow requests many listings on one connection and reads none of them.
func (a *attacker) closeWindow(ctx context.Context) {
	f := a.framed(ctx, a.http, 0)
	if f == nil {
		return
	}
	for range 100 {
		f.request("GET", "/v1/watches/"+target+"/resources", true, "accept", "*/*")
	}
	f.finish()
}

// resetListings requests listings, and cancels each request immediately.
func (a *attacker) resetListings(ctx context.Context) {
	f := a.framed(ctx, a.http, 0)
	if f == nil {
		return
	}
	a.often(ctx, 500, func(int) bool {
		id, ok := f.request("GET", "/v1/watches/"+target+"/resources", true, "accept", "*/*")
		return ok && f.WriteRSTStream(id, http2.ErrCodeCancel) == nil
	})
	f.finish()
}

// call starts a gRPC call.
func (f *framed) call(method string) (id uint32, ok bool) {
	return f.request("POST", "/watchtide.v1.WatchService/"+method, false, "content-type", "application/grpc", "te", "trailers")
}

// announceMessages announces large messages, and sends nothing of them.
func (a *attacker) announceMessages(ctx context.Context) {
	f := a.framed(ctx, a.grpc, 64<<10)
	if f == nil {
		return
	}
	for n := range 96 {
		id, ok := f.call([]string{"PutResource", "ListWatches", "WatchList"}[n%3])
		if !ok {
			break
		}
		f.WriteData(id, false, binary.BigEndian.AppendUint32([]byte{0}, 16<<20))
	}
	f.finish()
}

// ignoreLists follows a watch many times over one connection, and reads nothing.
func (a *attacker) ignoreLists(ctx context.Context) {
	f := a.framed(ctx, a.grpc, 0)
	if f == nil {
		return
	}
	message := append([]byte{0x0a, byte(len(target))}, target...) // field 1: the watch
	message = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	for range 100 {
		id, ok := f.call("WatchList")
		if !ok {
			break
		}
		f.WriteData(id, true, message)
	}
	f.finish()
}
