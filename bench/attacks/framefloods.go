package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/watchtide/watchtide/bench/internal/process"
)

var frameFloods = attack{
	name:  "frame-floods",
	title: "clients of HTTP/2 send frames that ask for nothing, reset what they ask for, do not end a header, open no window, or one of a byte, close and open those of all streams at once, and read slowly",
	run:   runFrameFloods,
}

const floodConfiguration = listeners + `
stream: { write_timeout: 2s }
sources: { s: { type: store } }
watches: { w: { source: s } }
`

// flooder sends frames over a connection; n is how many it has sent before.
type flooder struct {
	name string
	// away says that the gateway is to end the connections.
	away bool
	send func(f *http2.Framer, fields []byte, n uint32) error
}

var flooders = []flooder{
	{"pings", true, func(f *http2.Framer, _ []byte, _ uint32) error { return f.WritePing(false, [8]byte{}) }},
	{"settings", true, func(f *http2.Framer, _ []byte, n uint32) error {
		return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: n})
	}},
	{"empty data", true, func(f *http2.Framer, fields []byte, n uint32) error {
		if n == 0 {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields, EndHeaders: true})
		}
		return f.WriteData(1, false, nil)
	}},
	{"requests that are reset", true, func(f *http2.Framer, fields []byte, n uint32) error {
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n + 1, BlockFragment: fields, EndHeaders: true, EndStream: true}); err != nil {
			return err
		}
		return f.WriteRSTStream(2*n+1, http2.ErrCodeCancel)
	}},
	{"requests that the gateway must reset", true, func(f *http2.Framer, fields []byte, n uint32) error {
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n + 1, BlockFragment: fields, EndHeaders: true, EndStream: true}); err != nil {
			return err
		}
		return f.WriteWindowUpdate(2*n+1, 1<<31-1)
	}},
	{"headers without an end", true, func(f *http2.Framer, fields []byte, n uint32) error {
		if n == 0 {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields})
		}
		return f.WriteContinuation(1, false, []byte{0, 1, 'x', 1, 'y'})
	}},
	{"streams that may not send", false, func(f *http2.Framer, fields []byte, n uint32) error {
		if n == 0 {
			return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		}
		if n > 100 {
			return errEnough
		}
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n - 1, BlockFragment: fields, EndHeaders: true, EndStream: true})
	}},
	{"streams that may send a byte at a time", true, func(f *http2.Framer, fields []byte, n uint32) error {
		switch {
		case n == 0:
			return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		case n <= 100:
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n - 1, BlockFragment: fields, EndHeaders: true, EndStream: true})
		}
		return f.WriteWindowUpdate(2*(n%100)+1, 1)
	}},
	{"streams that together may send a byte at a time", true, func(f *http2.Framer, fields []byte, n uint32) error {
		if n < 100 {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n + 1, BlockFragment: fields, EndHeaders: true, EndStream: true})
		}
		return f.WriteWindowUpdate(0, 1)
	}},
	{"settings that close and open the windows of streams that wait", true, func(f *http2.Framer, fields []byte, n uint32) error {
		if n < 100 {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n + 1, BlockFragment: fields, EndHeaders: true, EndStream: true})
		}
		return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: n % 2 * 70_000})
	}},
	{"settings that do so 60 times in a frame", true, func(f *http2.Framer, fields []byte, n uint32) error {
		if n < 100 {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n + 1, BlockFragment: fields, EndHeaders: true, EndStream: true})
		}
		var all [60]http2.Setting
		for i := range all {
			all[i] = http2.Setting{ID: http2.SettingInitialWindowSize, Val: (n + uint32(i)) % 2 * 70_000}
		}
		return f.WriteSettings(all[:]...)
	}},
}

// errEnough ends a flood, whose connection stays open.
var errEnough = fmt.Errorf("all is sent")

const (
	floodConnections = 20
	floodTime        = 3 * time.Second
)

func runFrameFloods(ctx context.Context, r *rig) error {
	if err := readSlowly(ctx, r); err != nil {
		return err
	}
	t, err := r.start(ctx, floodConfiguration, nil)
	if err != nil {
		return err
	}
	for i := range 200 {
		if err := t.as("", "127.0.0.1").put(ctx, "w", fmt.Sprint("k", i), `"`+strings.Repeat("x", 4<<10)+`"`); err != nil {
			return err
		}
	}
	for _, f := range flooders {
		if err := floodWith(ctx, r, t, f); err != nil {
			return err
		}
	}
	peak, err := process.PeakResident(t.PID())
	if err != nil {
		return err
	}
	r.report("resident memory at its peak", "≤ 256 MiB", peak <= 256<<20, "%d MiB", peak>>20)
	return process.Await(ctx, "the streams to end", func() (bool, error) {
		n, err := t.Metric(ctx, "watchtide_subscribers")
		return n == 0, err
	})
}

// floodWith runs one flood over some connections, each of which is opened again when it is closed, and asks for the
// health of the gateway meanwhile.
func floodWith(ctx context.Context, r *rig, t *target, f flooder) error {
	flooding, stop := context.WithTimeout(ctx, floodTime)
	defer stop()
	var all sync.WaitGroup
	var frames, closed atomic.Int64
	for range floodConnections {
		all.Go(func() {
			for flooding.Err() == nil {
				n, ended := flood(flooding, t.HTTP, f)
				frames.Add(n)
				if ended {
					closed.Add(1)
				}
			}
		})
	}
	health, operator := []time.Duration{}, t.as("", "127.0.0.1")
	for flooding.Err() == nil {
		a, err := operator.get(ctx, "/healthz")
		if err != nil || a.status != 200 {
			return fmt.Errorf("/healthz during %s: %d, %w", f.name, a.status, err)
		}
		health = append(health, a.took)
		if process.Sleep(ctx, 5*time.Millisecond) != nil {
			break
		}
	}
	all.Wait()
	slices.Sort(health)
	late := quantile(health, 0.99)
	r.report(f.name+": the slowest of 100 health checks", "≤ 1s", late <= time.Second, "%v, during %d frames", late.Round(100*time.Microsecond), frames.Load())
	if f.away {
		r.report(f.name+": connections that are ended", "all", closed.Load() >= floodConnections, "%d", closed.Load())
	}
	return nil
}

// flood floods one connection until that is closed, or ctx ends. It returns how many frames were sent, and whether the
// gateway has ended the connection.
func flood(ctx context.Context, address string, f flooder) (n int64, ended bool) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, false
	}
	defer c.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, c)
	}()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	fields := streamFields()
	framer := http2.NewFramer(c, nil)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		return 0, false
	}
	for err = framer.WriteSettings(); err == nil; n++ {
		err = f.send(framer, fields, uint32(n))
	}
	if err == errEnough {
		<-ctx.Done()
	}
	ended = ctx.Err() == nil
	c.Close()
	<-read
	return n, ended
}

// streamFields returns the header of a request for a stream. It is the same each time on a connection.
func streamFields() []byte {
	var fields bytes.Buffer
	e := hpack.NewEncoder(&fields)
	e.SetMaxDynamicTableSize(0)
	for _, h := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "localhost"}, {":path", "/v1/events?watch=w"}} {
		_ = e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1], Sensitive: true}) // a buffer takes everything
	}
	return fields.Bytes()
}

const (
	slowConnections = 300
	slowTime        = 20 * time.Second
	slowMost        = 160 << 10 // bytes of memory for each connection, with what the collector leaves
)

// readSlowly opens connections of one stream each, with all windows open, and takes a little now and then of what changes
// meanwhile.
func readSlowly(ctx context.Context, r *rig) error {
	t, err := r.start(ctx, floodConfiguration, nil) // of its own, so that no memory is left over
	if err != nil {
		return err
	}
	var all []net.Conn
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	for range slowConnections {
		c, err := openSlow(ctx, t.HTTP)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	if err := process.Await(ctx, "the streams to open", func() (bool, error) {
		n, err := t.Metric(ctx, "watchtide_subscribers")
		return n == slowConnections, err
	}); err != nil {
		return err
	}
	before, err := process.Resident(t.PID())
	if err != nil {
		return err
	}
	reading, stop := context.WithTimeout(ctx, slowTime)
	defer stop()
	var readers sync.WaitGroup
	for _, c := range all {
		readers.Go(func() {
			p := make([]byte, 1000)
			for process.Sleep(reading, time.Second) == nil {
				if _, err := c.Read(p); err != nil {
					return
				}
			}
		})
	}
	writer := t.as("", "127.0.0.1")
	for i := 0; reading.Err() == nil; i++ {
		if err := writer.put(ctx, "w", fmt.Sprint("k", i%10), `"`+strings.Repeat(string(rune('a'+i%26)), 8<<10)+`"`); err != nil {
			return err
		}
		_ = process.Sleep(reading, 20*time.Millisecond)
	}
	readers.Wait()
	after, err := process.Resident(t.PID())
	if err != nil {
		return err
	}
	each := max(0, after-before) / slowConnections
	r.report("slow readers: memory for each connection", fmt.Sprintf("≤ %d KiB", slowMost>>10), each <= slowMost, "%d KiB", each>>10)
	return nil
}

// openSlow opens a stream over a connection of its own, whose kernel takes little.
func openSlow(ctx context.Context, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	const window = 1<<31 - 1
	var request bytes.Buffer
	request.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&request, nil)
	err = errors.Join(c.(*net.TCPConn).SetReadBuffer(4<<10),
		f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}), f.WriteWindowUpdate(0, window-1<<16),
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: streamFields(), EndHeaders: true, EndStream: true}))
	if err == nil {
		_, err = c.Write(request.Bytes())
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
