package h2

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// echo is a handler that has one answer of each kind.
func echo(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/echo":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("X-Length", r.Header.Get("Content-Length"))
		_, _ = w.Write(body)
	case "/large":
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
		w.Header().Set("Connection", "keep-alive")
		for range 10 {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 30_001))
		}
	case "/flushed":
		_, _ = io.WriteString(w, "<html>")
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("X-Late", "1")
		_, _ = io.WriteString(w, "</html>")
	case "/fields":
		w.Header().Set("X-Large", strings.Repeat("y", 40<<10))
		w.Header().Set("X-Bad\n", "1")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "1")
	case "/nothing":
		w.WriteHeader(http.StatusNoContent)
		if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrBodyNotAllowed) {
			panic(err)
		}
	case "/length":
		w.Header().Set("Content-Length", "5")
		_, _ = io.WriteString(w, "12345")
		if _, err := io.WriteString(w, "6"); !errors.Is(err, http.ErrContentLength) {
			panic(err)
		}
	case "/early":
		w.Header().Set("Link", "</a>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "later")
	case "/short":
		w.Header().Set("Content-Length", "5")
		_, _ = io.WriteString(w, "123")
	case "/panic":
		_, _ = io.WriteString(w, "1")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// TestAnswersAreThoseOfHTTP1 sends requests to the same handler over HTTP/2 and over HTTP/1.1 of net/http.
func TestAnswersAreThoseOfHTTP1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, echo)
		answers := func(unencrypted bool, method, path, body string) (status int, header http.Header, got string, failed bool) {
			var protocols http.Protocols
			protocols.SetHTTP1(!unencrypted)
			protocols.SetUnencryptedHTTP2(unencrypted)
			transport := &http.Transport{Protocols: &protocols, DialContext: r.dial, DisableCompression: true}
			defer transport.CloseIdleConnections()
			var reader io.Reader
			if body != "" {
				reader = io.MultiReader(strings.NewReader(body)) // of an unknown length
			}
			if strings.HasSuffix(path, "?length") {
				reader = strings.NewReader(body)
			}
			request, err := http.NewRequest(method, "http://here"+path, reader)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(path, "?expect") {
				request.Header.Set("Expect", "100-continue")
			}
			response, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			defer response.Body.Close()
			if want := map[bool]int{false: 1, true: 2}[unencrypted]; response.ProtoMajor != want {
				t.Fatalf("spoke %s", response.Proto)
			}
			all, err := io.ReadAll(response.Body)
			return response.StatusCode, response.Header, string(all), err != nil
		}
		for _, c := range []struct{ method, path, body string }{
			{"GET", "/echo", ""}, {"POST", "/echo", "a body"}, {"POST", "/echo?length", "a body"}, {"PUT", "/echo?expect", "a body"}, {"POST", "/echo", strings.Repeat("0123456789", 100_000)},
			{"GET", "/large", ""}, {"HEAD", "/large", ""}, {"GET", "/flushed", ""}, {"HEAD", "/flushed", ""}, {"GET", "/fields", ""}, {"GET", "/nothing", ""}, {"GET", "/length", ""},
			{"HEAD", "/length", ""}, {"GET", "/early", ""}, {"GET", "/short", ""}, {"GET", "/panic", ""}, {"OPTIONS", "/none", ""}, {"POST", "/none", "ignored"},
		} {
			status1, header1, body1, failed1 := answers(false, c.method, c.path, c.body)
			status2, header2, body2, failed2 := answers(true, c.method, c.path, c.body)
			for _, name := range []string{"Connection", "Keep-Alive"} {
				header1.Del(name)
			}
			if status1 != status2 || body1 != body2 || failed1 != failed2 || !maps.EqualFunc(header1, header2, slices.Equal) {
				t.Errorf("%s %s: HTTP/2 answers %d, %v, %.100q, failed %t; HTTP/1.1 answers %d, %v, %.100q, failed %t",
					c.method, c.path, status2, header2, body2, failed2, status1, header1, body1, failed1)
			}
		}
	})
}

// TestMalformedRequests: one stream ends, and the connection goes on.
func TestMalformedRequests(t *testing.T) {
	head := []string{":method: GET", ":scheme: http", ":authority: here", ":path: /echo"}
	for name, fields := range map[string][]string{
		"no method":              head[1:],
		"no path":                head[:3],
		"a scheme of its own":    {":method: GET", ":scheme: ftp", ":path: /"},
		"CONNECT":                {":method: CONNECT", ":authority: here"},
		"CONNECT with a path":    {":method: CONNECT", ":scheme: http", ":authority: here", ":path: /echo"},
		"a path without a slash": {":method: GET", ":scheme: http", ":path: echo"},
		"a user":                 {":method: GET", ":scheme: http", ":authority: me@here", ":path: /echo"},
		"Connection":             append(head[:4:4], "connection: close"),
		"Transfer-Encoding":      append(head[:4:4], "transfer-encoding: chunked"),
		"TE":                     append(head[:4:4], "te: gzip"),
		"two lengths":            append(head[:4:4], "content-length: 0", "content-length: 0"),
		"a length without body":  append(head[:4:4], "content-length: 1"),
		"upper case":             append(head[:4:4], "X: 1"),
		"a late pseudo field":    {":method: GET", "x: 1", ":scheme: http", ":path: /"},
		"a status":               append([]string{":status: 200"}, head...),
		"a value with a line":    append(head[:4:4], "x: 1\n2"),
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newRig(t, echo).open()
			c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(fields...), EndStream: true, EndHeaders: true}))
			c.request(3, "GET", "/echo", true)
			got := c.take()
			if len(got) != 2 || got[0] != "1: reset PROTOCOL_ERROR" || got[1] != "3: status 200 end" {
				t.Errorf("%s: got %q", name, got)
			}
		})
	}
}

// fault is something that a client must not do.
type fault struct {
	do   func(*client) error
	want string // the last thing that is seen, but for the end
}

func windowOf(id, n uint32) func(*client) error {
	return func(c *client) error { return c.WriteWindowUpdate(id, n) }
}

func dataOf(id uint32, n int) func(*client) error {
	return func(c *client) error { return c.WriteData(id, false, make([]byte, n)) }
}

var faults = map[string]fault{
	"an even stream": {func(c *client) error { c.request(2, "GET", "/echo", true); return nil }, "away 0 PROTOCOL_ERROR"},
	"a smaller stream": {func(c *client) error {
		c.request(5, "GET", "/echo", true)
		c.request(3, "GET", "/echo", true)
		return nil
	}, "away 5 PROTOCOL_ERROR"},
	"data before a header": {dataOf(1, 1), "away 0 PROTOCOL_ERROR"},
	"window of no stream":  {windowOf(7, 1), "away 0 PROTOCOL_ERROR"},
	"reset of no stream":   {func(c *client) error { return c.WriteRSTStream(7, http2.ErrCodeCancel) }, "away 0 PROTOCOL_ERROR"},
	"no window":            {windowOf(0, 0), "away 0 PROTOCOL_ERROR"},
	"window overflow":      {windowOf(0, 1<<31-1), "away 0 FLOW_CONTROL_ERROR"},
	"too long a frame":     {func(c *client) error { return c.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, frameBytes+1)) }, "away 0 FRAME_SIZE_ERROR"},
	"a push": {func(c *client) error {
		return c.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: []byte{0x82}, EndHeaders: true})
	}, "away 0 PROTOCOL_ERROR"},
	"a continuation": {func(c *client) error { return c.WriteContinuation(1, true, nil) }, "away 0 PROTOCOL_ERROR"},
	"no compression": {func(c *client) error {
		return c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
	}, "away 0 COMPRESSION_ERROR"},
	"settings: window": {func(c *client) error {
		return c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
	}, "away 0 FLOW_CONTROL_ERROR"},
	"settings: frame size": {func(c *client) error { return c.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1}) }, "away 0 PROTOCOL_ERROR"},
	"settings: too many":   {func(c *client) error { return c.WriteSettings(make([]http2.Setting, 1000)...) }, "away 0 ENHANCE_YOUR_CALM"},
	"a stream upon itself": {func(c *client) error { return c.WritePriority(1, http2.PriorityParam{StreamDep: 1}) }, "1: reset PROTOCOL_ERROR"},
	"data after the end":   {func(c *client) error { c.request(1, "GET", "/wait", true); return c.WriteData(1, false, []byte("x")) }, "1: reset STREAM_CLOSED"},
	"header after the end": {func(c *client) error {
		c.request(1, "GET", "/wait", true)
		c.request(1, "GET", "/echo", true)
		return nil
	}, "1: reset STREAM_CLOSED"},
	"trailers without an end": {func(c *client) error {
		c.request(1, "POST", "/wait", false)
		return c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block("x: 1"), EndHeaders: true})
	}, "1: reset PROTOCOL_ERROR"},
	"more than the length": {func(c *client) error {
		c.request(1, "POST", "/wait", false, "content-length: 1")
		return c.WriteData(1, true, []byte("xx"))
	}, "1: reset PROTOCOL_ERROR"},
	"less than the length": {func(c *client) error {
		c.request(1, "POST", "/wait", false, "content-length: 3")
		return c.WriteData(1, true, []byte("xx"))
	}, "1: reset PROTOCOL_ERROR"},
	"more than the window": {func(c *client) error {
		c.request(1, "POST", "/wait", false)
		return errors.Join(dataOf(1, 16<<10)(c), dataOf(1, 16<<10)(c), dataOf(1, 16<<10)(c), dataOf(1, 16<<10)(c))
	}, "1: reset FLOW_CONTROL_ERROR"},
	"stream window overflow": {func(c *client) error { c.request(1, "GET", "/wait", true); return c.WriteWindowUpdate(1, 1<<31-1) }, "1: reset FLOW_CONTROL_ERROR"},
}

// TestFaults: what a client must not do ends its connection, or the stream, with the error of RFC 9113.
func TestFaults(t *testing.T) {
	for name, test := range faults {
		synctest.Test(t, func(t *testing.T) {
			c := newRig(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).open()
			if strings.Contains(name, "smaller") {
				c = newRig(t, echo).open()
			}
			c.must(test.do(c))
			got := c.take()
			if len(got) == 0 || got[len(got)-1] != test.want {
				t.Errorf("%s: got %q, want %q", name, got, test.want)
			}
			if !strings.HasPrefix(test.want, "away") {
				c.must(c.WritePing(false, [8]byte{}))
				c.wants("ping true")
				return
			}
			time.Sleep(time.Second)
			c.wants("closed")
		})
	}
}

// TestConnectionThatSaysNothing: neither one without settings nor one without requests stays.
func TestConnectionThatSaysNothing(t *testing.T) {
	for name, test := range map[string]struct {
		begin string
		after time.Duration
	}{"no settings": {http2.ClientPreface, settings.HelloTimeout}, "no answer to a PING": {http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00", settings.PingAfter + settings.PingTimeout}} {
		synctest.Test(t, func(t *testing.T) {
			c := newRig(t, echo).connect()
			c.must(c.write(test.begin))
			time.Sleep(test.after - time.Second)
			if got := c.take(); slices.Contains(got, "closed") {
				t.Errorf("%s: closed early: %q", name, got)
			}
			time.Sleep(2 * time.Second)
			c.wants("closed")
		})
	}
}

// TestIdleConnectionEnds: a client that answers each PING, and asks for nothing, is sent a GOAWAY. One that has a stream
// stays.
func TestIdleConnectionEnds(t *testing.T) {
	for name, busy := range map[string]bool{"idle": false, "busy": true} {
		synctest.Test(t, func(t *testing.T) {
			c := newRig(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).open()
			if busy {
				c.request(1, "GET", "/", true)
			}
			for range 6 {
				time.Sleep(settings.PingAfter - time.Second)
				_ = c.WritePing(true, [8]byte{})
			}
			want := []string{"away 0 NO_ERROR", "closed"}
			if busy {
				want = nil
			}
			if got := c.take(); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		})
	}
}

// TestShutdown: a GOAWAY is sent, requests in progress are answered, and those that come later are not.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { <-answer; _, _ = io.WriteString(w, "done") })
		c, quiet := r.open(), r.open()
		c.request(1, "GET", "/", true)
		synctest.Wait()
		shut := make(chan error, 1)
		go func() { shut <- r.server.Shutdown(context.Background()) }()
		time.Sleep(time.Second)
		c.wants("away 1 NO_ERROR")
		quiet.wants("away 0 NO_ERROR", "closed")
		c.request(3, "GET", "/", true)
		c.wants()
		close(answer)
		time.Sleep(time.Second)
		c.wants("1: status 200", `1: "done" end`, "closed")
		c.must(<-shut)
	})
}

// TestConnectionClose: an answer with Connection: close is followed by a GOAWAY.
func TestConnectionClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRig(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") }).open()
		c.request(1, "GET", "/", true)
		time.Sleep(time.Second)
		c.wants("1: status 200 end", "away 1 NO_ERROR", "closed")
	})
}

// TestTooManyStreams: those beyond the limit are refused, also while the handlers of streams that were reset still run.
func TestTooManyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish, started := make(chan struct{}), 0
		c := newRig(t, func(http.ResponseWriter, *http.Request) { started++; <-finish }).open()
		id := uint32(1)
		for range settings.MaxStreams {
			c.request(id, "GET", "/", true)
			c.must(c.WriteRSTStream(id, http2.ErrCodeCancel))
			synctest.Wait()
			id += 2
		}
		c.request(id, "GET", "/", true)
		c.wants("21: reset REFUSED_STREAM")
		close(finish)
		synctest.Wait()
		c.request(id+2, "GET", "/", true)
		c.wants("23: status 200 end")
		if started != settings.MaxStreams+1 {
			t.Errorf("%d handlers ran, of %d at most", started, settings.MaxStreams+1)
		}
	})
}

// TestFloods: a client that asks for nothing, again and again, is sent away.
func TestFloods(t *testing.T) {
	for name, frame := range map[string]func(*client) error{
		"PING":               func(c *client) error { return c.WritePing(false, [8]byte{}) },
		"settings":           func(c *client) error { return c.WriteSettings() },
		"settings that back": func(c *client) error { return c.WriteSettingsAck() },
		"priorities":         func(c *client) error { return c.WritePriority(1, http2.PriorityParam{}) },
		"windows":            func(c *client) error { return c.WriteWindowUpdate(1, 1) },
		"unknown frames":     func(c *client) error { return c.WriteRawFrame(0xee, 0, 0, nil) },
		"empty data":         func(c *client) error { return c.WriteData(1, false, nil) },
		"resets":             func(c *client) error { return c.WriteRSTStream(1, http2.ErrCodeCancel) },
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newRig(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).open()
			c.request(1, "POST", "/", false)
			n := 0
			for ; n < 2*floodBurst && frame(c) == nil; n++ {
			}
			synctest.Wait()
			got := c.take()
			if !slices.Contains(got, "away 1 ENHANCE_YOUR_CALM") && (name != "PING" && name != "settings" || got[len(got)-1] != "closed") {
				t.Errorf("%s: after %d frames: %q", name, n, got[max(0, len(got)-3):])
			}
		})
	}
}

// TestWindowsOfAllStreams: a frame that changes the windows of all streams costs more than another one.
func TestWindowsOfAllStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRig(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) }).open()
		for i := range settings.MaxStreams {
			c.request(uint32(2*i+1), "GET", "/", true)
		}
		synctest.Wait()
		c.take()
		n := 0
		for ; n < 2*floodBurst && c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(n%2) * 70_000}) == nil; n++ {
			if got := c.take(); slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, "ENHANCE_YOUR_CALM") }) {
				break
			}
		}
		if most := int(floodBurst/(1+streamCost*float64(settings.MaxStreams))) + 10; n > most {
			t.Errorf("%d frames were processed, want %d at most", n, most)
		}
	})
}

// TestSettingThatIsRepeated: the last value of a setting in a frame counts, and the streams are gone through once.
func TestSettingThatIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "0123456789") })
		c := rig.open(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for i := range settings.MaxStreams {
			c.request(uint32(2*i+1), "GET", "/", true)
		}
		synctest.Wait()
		c.take()
		repeated := make([]http2.Setting, mostSettings)
		n := 0
		for ; n < 2*floodBurst; n++ {
			for i := range repeated {
				repeated[i] = http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i % 2 * 70_000)}
			}
			repeated[mostSettings-1].Val = 0
			if c.WriteSettings(repeated...) != nil {
				break
			}
			if got := c.take(); len(got) > 0 {
				t.Logf("after %d frames: %q", n, got)
				break
			}
		}
		if n < floodBurst/2 || n == 2*floodBurst { // each costs as much as one that asks for nothing
			t.Errorf("%d frames were processed without another answer, want about %d", n, floodBurst)
		}
	})
}

// TestWindowsOfAByte: a client that lets a stream, or all of them, send a byte at a time is sent away. One whose windows are small
// is not.
func TestWindowsOfAByte(t *testing.T) {
	for id, window := range map[uint32]http2.Setting{0: {ID: http2.SettingInitialWindowSize, Val: 1 << 30}, 1: {ID: http2.SettingInitialWindowSize, Val: 0}} {
		for _, n := range []uint32{1, smallData} {
			synctest.Test(t, func(t *testing.T) {
				c := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
					for {
						if _, err := w.Write(make([]byte, 1<<20)); err != nil {
							return
						}
					}
				}).open(window)
				c.request(1, "GET", "/", true)
				away := false
				for range 2 * floodBurst {
					if err := c.WriteWindowUpdate(id, n); err != nil {
						break
					}
					got := c.take()
					if away = slices.Contains(got, "away 1 ENHANCE_YOUR_CALM"); away {
						break
					}
					if id != 0 && n > 1 { // that of the connection is wide
						c.must(c.WriteWindowUpdate(0, n))
					}
				}
				if want := n == 1; away != want {
					t.Errorf("windows of %d bytes (stream %d): the client is sent away: %t, want %t", n, id, away, want)
				}
			})
		}
	}
}

// TestRapidResets: requests that are reset at once are bounded.
func TestRapidResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled atomic.Int64
		c := newRig(t, func(_ http.ResponseWriter, r *http.Request) { handled.Add(1); <-r.Context().Done() }).open()
		p := c.block(":method: GET", ":scheme: http", ":path: /")
		for id := uint32(1); id < floodBurst; id += 2 {
			err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p, EndStream: true, EndHeaders: true})
			c.must(err, c.WriteRSTStream(id, http2.ErrCodeCancel))
		}
		got := c.take()
		if n := handled.Load(); n > floodBurst/resetCost || !slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, "ENHANCE_YOUR_CALM") }) {
			t.Errorf("%d requests were handled and reset", n)
		}
	})
}

// TestHeaderThatDoesNotEnd: neither a large header nor one of many small frames is collected.
func TestHeaderThatDoesNotEnd(t *testing.T) {
	for name, block := range map[string][]byte{"empty": nil, "large": append([]byte{0, 1, 'x', 0x7f, 0x81, 0x3f}, bytes.Repeat([]byte("y"), 8<<10)...), "small": {0, 1, 'x', 1, 'y'}} {
		synctest.Test(t, func(t *testing.T) {
			c := newRig(t, echo).open()
			c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block}))
			for range 10_000 {
				c.must(c.WriteContinuation(1, false, block)) // the connection is read until it is closed
			}
			if got := c.take(); len(got) == 0 || !strings.HasPrefix(got[0], "away 0 ") {
				t.Errorf("%s: got %q", name, got)
			}
		})
	}
}

// TestLargeHeader: a request with a header above the limit is refused, and the next one is answered.
func TestLargeHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRig(t, echo).open()
		x := "x: " + strings.Repeat("x", 1000)
		c.request(1, "GET", "/echo", true, x, x, x, x, x, x, x, x, x)
		c.request(3, "GET", "/echo", true)
		got := c.take()
		slices.Sort(got)
		if len(got) != 3 || got[1] != "1: status 431" || got[2] != "3: status 200 end" {
			t.Errorf("got %q", got)
		}
	})
}

// TestUnreadAnswers: a client that answers nothing that it is sent, and does not read, has its connection closed
// instead of a queue.
func TestUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, echo)
		conn, err := r.dial(r.t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		f := http2.NewFramer(conn, conn)
		_, err = io.WriteString(conn, http2.ClientPreface)
		err = errors.Join(err, f.WriteSettings())
		n := 0
		for ; err == nil && n < 10*controlsFull; n++ {
			err = f.WritePing(false, [8]byte{})
		}
		if n > 2*controlsFull/17 {
			t.Errorf("%d answers are queued", n)
		}
	})
}

// TestStalledStream: one whose window is closed waits alone, and the others of its connection go on. When its
// deadline passes, it is reset.
func TestStalledStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRig(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/deadline" {
				_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(3 * time.Second))
			}
			_, _ = io.WriteString(w, "0123456789")
			_ = http.NewResponseController(w).Flush()
		}).open(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 4})
		c.request(1, "GET", "/deadline", true)
		c.request(3, "GET", "/", true)
		if got := c.take(); len(got) != 4 {
			t.Fatalf("got %q", got)
		}
		c.must(c.WriteWindowUpdate(3, 10))
		c.wants(`3: "456789"`, `3: "" end`)
		time.Sleep(4 * time.Second)
		c.wants("1: reset INTERNAL_ERROR")
		c.request(5, "GET", "/", true)
		c.wants("5: status 200", `5: "0123"`)
		time.Sleep(settings.PingTimeout)
		c.wants("5: reset INTERNAL_ERROR")
		c.request(7, "GET", "/", true)
		c.wants("7: status 200", `7: "0123"`)
		c.must(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})) // of streams that are open too
		c.wants(`7: "456789"`, `7: "" end`)
	})
}

// TestConnectionWindow: while that of the connection is closed no stream sends, and then all do.
func TestConnectionWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRig(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 60_000)) }).open(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		c.request(1, "GET", "/", true)
		c.request(3, "GET", "/", true)
		sum := func() (n int) {
			for _, one := range c.take() {
				var id, bytes int
				var few []byte
				if _, err := fmt.Sscanf(one, "%d: %d bytes", &id, &bytes); err == nil {
					n += bytes
				} else if _, err := fmt.Sscanf(one, "%d: %q", &id, &few); err == nil {
					n += len(few)
				}
			}
			return n
		}
		if n := sum(); n != initialWindow {
			t.Errorf("%d bytes were sent, with a window of %d", n, initialWindow)
		}
		c.must(c.WriteWindowUpdate(0, 1<<20))
		if n := sum(); n != 120_000-initialWindow {
			t.Errorf("%d more bytes were sent", n)
		}
	})
}

// TestBodyThatDoesNotArrive: a read ends at its deadline, and the answer ends the stream.
func TestBodyThatDoesNotArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRig(t, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(3 * time.Second))
			_, err := io.ReadAll(r.Body)
			_, _ = io.WriteString(w, err.Error())
		}).open()
		c.request(1, "POST", "/", false)
		c.must(c.WriteData(1, false, []byte("some")))
		time.Sleep(4 * time.Second)
		c.wants("1: status 200", `1: "i/o timeout" end`, "1: reset NO_ERROR")
		c.must(c.WriteData(1, true, []byte("late")))
		c.wants() // what was on its way is ignored
	})
}

// TestAnswerBeforeTheBody: a client that is still sending has time to read the answer before its stream is reset, and
// may end it as it should.
func TestAnswerBeforeTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRig(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusRequestEntityTooLarge) }).open()
		for _, id := range []uint32{1, 3} {
			c.request(id, "POST", "/", false)
			c.wants(fmt.Sprintf("%d: status 413", id), fmt.Sprintf(`%d: "no\n" end`, id))
		}
		c.must(c.WriteData(1, false, make([]byte, 10_000)), c.WriteData(3, true, nil))
		c.wants()
		time.Sleep(linger)
		c.wants("1: reset NO_ERROR")
		c.must(c.WriteData(1, true, []byte("late")))
		c.wants()
	})
}

// TestUnreadBody: what a handler does not read does not take the window of the connection away from the others.
func TestUnreadBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRig(t, func(http.ResponseWriter, *http.Request) {}).open()
		for id := uint32(1); id < 100; id += 2 {
			c.request(id, "POST", "/", false)
			for range 3 {
				c.must(c.WriteDataPadded(id, false, make([]byte, 15_000), make([]byte, 200)))
			}
			time.Sleep(linger)
		}
		if got := c.take(); slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "FLOW") || strings.Contains(s, "REFUSED") }) {
			t.Errorf("got %q", got)
		}
	})
}

// FuzzConnection sends whatever comes to mind to a connection with a stream of each kind. The connection must end
// when its client leaves, with everything that it holds.
func FuzzConnection(f *testing.F) {
	frame := func(kind, flags byte, id uint32, payload string) string {
		head := []byte{0, byte(len(payload) >> 8), byte(len(payload)), kind, flags}
		return string(binary.BigEndian.AppendUint32(head, id)) + payload
	}
	f.Add([]byte(frame(4, 0, 0, "") + frame(1, 5, 1, "\x82\x86\x84") + frame(8, 0, 1, "\x00\x00\x00\x01")))
	f.Add([]byte(frame(4, 0, 0, "\x00\x04\x00\x00\x00\x00") + frame(1, 4, 1, "\x83\x86\x84") + frame(0, 1, 1, "body")))
	f.Add([]byte(frame(4, 0, 0, "") + frame(1, 0, 1, "\x82") + frame(9, 4, 1, "\x86\x84") + frame(3, 0, 1, "\x00\x00\x00\x08")))
	f.Add([]byte(frame(4, 0, 0, "") + frame(6, 0, 0, "12345678") + frame(7, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00")))
	f.Fuzz(func(t *testing.T, p []byte) {
		here, there := net.Pipe()
		detached := make(chan *Stream, settings.MaxStreams)
		of := &server{settings: settings, conns: map[*conn]struct{}{}}
		served := make(chan struct{})
		go func() {
			defer close(served)
			defer there.Close()
			of.serve(&http.Server{}, there, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if st := Detach(w); st != nil {
					_, _ = st.Write([]byte("event"))
					detached <- st
					return
				}
				_, _ = io.Copy(w, r.Body)
			}), true)
		}()
		go func() { _, _ = io.Copy(io.Discard, here) }()
		_, _ = here.Write(p)
		here.Close()
		<-served
		for {
			select {
			case st := <-detached:
				if _, err := st.Write([]byte("x")); err == nil || errors.Is(err, ErrBlocked) {
					t.Errorf("a stream of a connection that has ended takes bytes: %v", err)
				}
				st.Close()
				continue
			default:
			}
			return
		}
	})
}
