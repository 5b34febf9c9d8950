package h2

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// settings are those of the tests.
var settings = Settings{MaxStreams: 10, MaxHeaderBytes: 8 << 10, HelloTimeout: 10 * time.Second, IdleTimeout: time.Minute, PingAfter: 20 * time.Second, PingTimeout: 5 * time.Second, MinRate: 4 << 10}

// rig is a server of HTTP/2 in memory.
type rig struct {
	t       *testing.T
	server  *http.Server
	outputs *limits.Budget
	conns   chan net.Conn
	closed  chan struct{}
	close   sync.Once
	served  chan error
}

// newRig serves a handler. It must be called in a bubble of synctest.
func newRig(t *testing.T, h http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{t: t, conns: make(chan net.Conn), closed: make(chan struct{}), served: make(chan error, 1)}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	r.server = &http.Server{Handler: h, Protocols: &protocols, ErrorLog: log.New(io.Discard, "", 0)}
	own := settings
	own.Outputs = limits.NewSharedBudget(6*outputFull, 4*outputFull)
	r.outputs = own.Outputs
	Configure(r.server, own)
	go func() { r.served <- r.server.Serve(r) }()
	t.Cleanup(func() {
		r.server.Close()
		if err := <-r.served; err != http.ErrServerClosed {
			t.Error(err)
		}
		synctest.Wait()
	})
	return r
}

// Accept implements net.Listener.
func (r *rig) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return &netconn.StallTimeoutConn{Conn: c, Timeout: 10 * time.Second}, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (r *rig) Close() error {
	r.close.Do(func() { close(r.closed) })
	return nil
}

// Addr implements net.Listener.
func (r *rig) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (r *rig) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case r.conns <- there:
		return here, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

// client is a client that writes frames itself, valid or not, and remembers what it reads.
type client struct {
	net.Conn
	t *testing.T
	*http2.Framer
	fields  bytes.Buffer
	encoder *hpack.Encoder

	mu   sync.Mutex // guards the following field
	seen []string
}

// open opens a connection, and sends the settings of a client.
func (r *rig) open(s ...http2.Setting) *client {
	r.t.Helper()
	c := r.connect()
	c.must(c.write(http2.ClientPreface), c.WriteSettings(s...))
	return c
}

// connect opens a connection.
func (r *rig) connect() *client {
	r.t.Helper()
	conn, err := r.dial(r.t.Context(), "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	c := &client{Conn: conn, t: r.t, Framer: http2.NewFramer(conn, conn)}
	c.encoder = hpack.NewEncoder(&c.fields)
	c.ReadMetaHeaders = hpack.NewDecoder(headerTable, nil)
	c.AllowIllegalWrites = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.read()
	}()
	r.t.Cleanup(func() { conn.Close(); <-done })
	return c
}

func (c *client) must(errs ...error) {
	c.t.Helper()
	for _, err := range errs {
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *client) write(s string) error {
	_, err := io.WriteString(c.Conn, s)
	return err
}

func (c *client) read() {
	for {
		f, err := c.ReadFrame()
		c.mu.Lock()
		if err != nil {
			c.seen = append(c.seen, "closed")
			c.mu.Unlock()
			return
		}
		c.seen = append(c.seen, describe(f))
		c.mu.Unlock()
	}
}

// describe returns a frame in a line.
func describe(f http2.Frame) string {
	id, end := f.Header().StreamID, ""
	if f.Header().Flags.Has(http2.FlagDataEndStream) {
		end = " end"
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return fmt.Sprintf("%d: status %s%s", id, f.PseudoValue("status"), end)
	case *http2.DataFrame:
		if len(f.Data()) > 40 {
			return fmt.Sprintf("%d: %d bytes%s", id, len(f.Data()), end)
		}
		return fmt.Sprintf("%d: %q%s", id, f.Data(), end)
	case *http2.RSTStreamFrame:
		return fmt.Sprintf("%d: reset %s", id, f.ErrCode)
	case *http2.GoAwayFrame:
		return fmt.Sprintf("away %d %s", f.LastStreamID, f.ErrCode)
	case *http2.PingFrame:
		return fmt.Sprintf("ping %t", f.IsAck())
	case *http2.WindowUpdateFrame:
		return fmt.Sprintf("window %d %d", id, f.Increment)
	}
	return fmt.Sprintf("%d: %s", id, f.Header().Type)
}

// take returns what was read since the last call, without settings and windows of the connection.
func (c *client) take() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.DeleteFunc(c.seen, func(s string) bool { return s == "0: SETTINGS" || strings.HasPrefix(s, "window 0 ") })
	c.seen = nil
	return out
}

// wants checks what was read since the last call.
func (c *client) wants(want ...string) {
	c.t.Helper()
	if got := c.take(); !slices.Equal(got, want) {
		c.t.Errorf("got %q, want %q", got, want)
	}
}

// block returns a block of fields, "name: value".
func (c *client) block(fields ...string) []byte {
	c.fields.Reset()
	for _, f := range fields {
		i := 1 + strings.Index(f[1:], ": ")
		c.must(c.encoder.WriteField(hpack.HeaderField{Name: f[:i], Value: f[i+2:]}))
	}
	return bytes.Clone(c.fields.Bytes())
}

// request sends the header of a request.
func (c *client) request(id uint32, method, path string, end bool, fields ...string) {
	c.t.Helper()
	p := c.block(append([]string{":method: " + method, ":scheme: http", ":authority: here", ":path: " + path}, fields...)...)
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p, EndStream: end, EndHeaders: true}))
}
