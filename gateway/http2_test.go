package gateway

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/stream"
	"golang.org/x/net/http2"
)

// overHTTP2 makes the client of a rig speak HTTP/2, over one connection.
func (r *rig) overHTTP2() {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	r.client.Transport.(*http.Transport).Protocols = &protocols
	synctest.Wait()
}

// TestHTTP2StreamsBesideRequests: on one connection there are streams of two formats, compressed and not, lists,
// pages and a write.
func TestHTTP2StreamsBesideRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		if _, err := r.Registry.Add(streamConfig("notes", newNotebook())); err != nil {
			t.Fatal(err)
		}
		r.Prime("a", 1, gatewaytest.Resource("k", 1, `"first"`))
		r.overHTTP2()
		sse, ndjson := r.get("/v1/events?watch=a"), r.get("/v1/watches/a/events?format=ndjson")
		packed := r.get("/v1/events?watch=a", "Accept-Encoding: gzip")
		for _, path := range []string{"/v1/watches/a/resources", "/v1/watches/a/changes", "/", "/openapi.json", "/healthz"} {
			if x := r.get(path); x.StatusCode != http.StatusOK || x.ProtoMajor != 2 || x.Text() == "" {
				t.Errorf("%s: %s, %s", path, x.Proto, x.Status)
			}
		}
		write, err := http.NewRequest(http.MethodPut, "http://gateway/v1/watches/notes/resources/n", strings.NewReader(`{"text":"hello"}`))
		if err != nil {
			t.Fatal(err)
		}
		write.Header.Set("Content-Type", "application/json")
		answer, err := r.client.Do(write)
		if err != nil || answer.StatusCode/100 != 2 || answer.ProtoMajor != 2 {
			t.Fatalf("the write: %v, %v", answer, err)
		}
		answer.Body.Close()
		if x := r.request(http.MethodHead, "/v1/events?watch=a"); x.StatusCode != http.StatusOK || x.Text() != "" {
			t.Errorf("HEAD: %s, %q", x.Status, x.Text())
		}
		if x := r.get("/v1/events?watch=none"); x.StatusCode != http.StatusNotFound {
			t.Errorf("a watch that does not exist: %s", x.Status)
		}
		r.Commit("a", 2, gatewaytest.Resource("k", 2, `"second"`))
		synctest.Wait()
		for name, x := range map[string]*gatewaytest.Exchange{"sse": sse, "ndjson": ndjson} {
			if !strings.Contains(x.Text(), `"second"`) {
				t.Errorf("%s: %q", name, x.Text())
			}
		}
		if packed.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("the header of the compressed stream is %v", packed.Header)
		}
		if got := sse.Header; got.Get("Content-Type") != "text/event-stream; charset=utf-8" || got.Get("Date") == "" || got.Get("Connection") != "" {
			t.Errorf("the header of a stream is %v", got)
		}
	})
}

// TestHTTP2MaxAge: a stream ends with a goodbye, and its connection goes on.
func TestHTTP2MaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{MaxAge: time.Hour}}, "a")
		r.Prime("a", 1)
		r.overHTTP2()
		x := r.get("/v1/events?watch=a")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if over, err := x.Over(); !over || err != nil || !strings.Contains(x.Text(), string(stream.GoodbyeMaxAge)) {
			t.Errorf("over %t, %v: %q", over, err, x.Text())
		}
		if x := r.get("/healthz"); x.StatusCode != http.StatusOK {
			t.Errorf("the next request: %s", x.Status)
		}
	})
}

// TestHTTP2ClosedWindow: streams that their client does not let send end after the time-out of a write, each by
// itself, and hold nothing afterwards. One beside them goes on.
func TestHTTP2ClosedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{WriteTimeout: 5 * time.Second, Heartbeat: 2 * time.Second}}, "a")
		r.Prime("a", 1, pages(1<<20)...)
		c := r.framed(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		other := c.open("GET", "/v1/events?watch=a&prefix=none", true)
		if err := c.WriteWindowUpdate(other, 1<<20); err != nil {
			t.Fatal(err)
		}
		for range netconn.MaxStreams - 1 {
			c.open("GET", "/v1/events?watch=a", true)
		}
		synctest.Wait()
		w, _ := r.Registry.Watch("a")
		if n := r.gateway.admission.Count(); n != netconn.MaxStreams {
			t.Fatalf("%d streams are open", n)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n, m := r.gateway.admission.Count(), w.Subscribers(); n != 1 || m > 1 {
			t.Errorf("after the time-out there are %d streams and %d subscribers, want one", n, m)
		}
		for id := uint32(3); id < c.next; id += 2 {
			if ended, code := c.hasEnded(id); !ended || code == http2.ErrCodeNo {
				t.Fatalf("stream %d: ended %t, %v", id, ended, code)
			}
		}
		if ended, code := c.hasEnded(other); ended || c.isClosed() {
			t.Errorf("the stream that may send has ended: %v", code)
		}
	})
}

// TestHTTP2SlowConnection: streams that wait for their turn on a slow connection are not cut off while it takes
// bytes, and all are once it does not.
func TestHTTP2SlowConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{WriteTimeout: 5 * time.Second}}, "a")
		onShards(t)
		r.Prime("a", 1, pages(1<<20)...)
		c, err := r.network.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		slow := &slowReader{Conn: c, each: time.Second, stop: make(chan struct{}), end: make(chan struct{})}
		defer close(slow.end)
		f := newFramed(t, slow, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		if err := f.WriteWindowUpdate(0, 1<<30); err != nil {
			t.Fatal(err)
		}
		const streams = 5
		for range streams {
			f.open("GET", "/v1/events?watch=a", true)
		}
		time.Sleep(time.Minute)
		if n := r.gateway.admission.Count(); n != streams {
			t.Errorf("%d streams are open on a slow connection, of %d", n, streams)
		}
		close(slow.stop)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := r.gateway.admission.Count(); n != 0 {
			t.Errorf("%d streams are open on a connection that takes nothing", n)
		}
	})
}

// slowReader reads a little each time, and then waits.
type slowReader struct {
	net.Conn
	each      time.Duration
	stop, end chan struct{} // reads wait from the one on until the other one
}

// Read implements net.Conn.
func (c *slowReader) Read(p []byte) (int, error) {
	time.Sleep(c.each)
	if session.Closed(c.stop) {
		<-c.end
		return 0, net.ErrClosed
	}
	return c.Conn.Read(p[:min(len(p), 1000)])
}

// TestHTTP2StreamsThatAreReset: streams that are opened and reset, again and again, leave nothing behind.
func TestHTTP2StreamsThatAreReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
		c := r.framed()
		for i := range 10 {
			var ids []uint32
			for range netconn.MaxStreams / 2 {
				ids = append(ids, c.open("GET", fmt.Sprintf("/v1/events?watch=a&format=%s", []string{"sse", "ndjson"}[i%2]), true))
			}
			if i%3 > 0 {
				synctest.Wait()
			}
			for _, id := range ids {
				if err := c.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		w, _ := r.Registry.Watch("a")
		if n, m := r.gateway.admission.Count(), w.Subscribers(); n != 0 || m != 0 {
			t.Errorf("%d streams and %d subscribers are left", n, m)
		}
		if x := c.open("GET", "/healthz", true); c.field(x, ":status") != "200" {
			synctest.Wait()
			if got := c.field(x, ":status"); got != "200" {
				t.Errorf("the next request: status %q", got)
			}
		}
	})
}

// TestHTTP2ConnectionThatEnds: all streams of a connection end with it.
func TestHTTP2ConnectionThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
		c := r.framed()
		for range netconn.MaxStreams {
			c.open("GET", "/v1/events?watch=a", true)
		}
		synctest.Wait()
		if n := r.gateway.admission.Count(); n != netconn.MaxStreams {
			t.Fatalf("%d streams are open", n)
		}
		c.Close()
		synctest.Wait()
		w, _ := r.Registry.Watch("a")
		if n, m := r.gateway.admission.Count(), w.Subscribers(); n != 0 || m != 0 {
			t.Errorf("%d streams and %d subscribers are left", n, m)
		}
	})
}
