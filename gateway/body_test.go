package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	"github.com/watchtide/watchtide/stream"
)

// announced returns a request head that announces a body.
func announced(method, path, framing string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: gateway\r\n%s\r\n\r\n", method, path, framing)
}

// answer reads the answer on a dialled connection, and measures how long it
// took.
func (c *rawConn) answer(t *testing.T) (res *http.Response, body string, took time.Duration) {
	t.Helper()
	began := time.Now()
	res, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		t.Fatalf("after %s: %v", time.Since(began), err)
	}
	took = time.Since(began)
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text), took
}

// An unwanted body delays nothing, whether it arrives or not: a stream with one would
// send nothing before it arrived.
func TestBodyWhereNoneIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1)
		for _, path := range []string{"/v1/events?watch=a", "/v1/watches/a/changes", "/v1/watches/a/resources", "/healthz"} {
			for _, sent := range []string{"", "hello"} {
				c := r.dial(announced("GET", path, "Content-Length: 5") + sent)
				res, body, took := c.answer(t)
				if res.StatusCode != 400 || !res.Close || took != 0 || !strings.Contains(body, `"parameter":"body"`) {
					t.Errorf("GET %s, body %q: %s after %s: %s", path, sent, res.Status, took, body)
				}
			}
		}
		for _, method := range []string{"DELETE", "HEAD"} {
			c := r.dial(announced(method, "/v1/watches/a/resources/k", "Content-Length: 5"))
			if line, err := c.ReadString('\n'); !strings.Contains(line, " 400 ") {
				t.Errorf("%s: %q, %v", method, line, err)
			}
		}
		if n := r.gateway.admission.Count(); n != 0 {
			t.Errorf("%d streams are open", n)
		}
	})
}

// Requests without parameters in a body have none, even if their method may have one.
func TestBodyOfMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMoving(t, Config{})
		x := r.get("/v1/watches/late/events" + asking("order", "n", "limit", "2", "offset", "3"))
		settle()
		id := idOf(t, x)
		x.Take()
		for _, request := range []string{"POST /v1/streams/" + id + "/window", "PUT /v1/streams/" + id} {
			method, path, _ := strings.Cut(request, " ")
			for _, framing := range []string{"Content-Length: 8\r\n\r\noffset=5", "Transfer-Encoding: chunked\r\n\r\n8\r\noffset=5\r\n0"} {
				res, body, _ := r.dial(announced(method, path, framing)).answer(t)
				if res.StatusCode != 400 || !strings.Contains(body, `"parameter":"body"`) || !strings.Contains(body, "parameters in the query") {
					t.Errorf("%s: %s: %s", request, res.Status, body)
				}
			}
		}
		settle()
		wantOutline(t, "the stream", x.Take())
		wantOutline(t, "without a body", r.move(x, id, "offset=4", `{"move":1}`), "-k3", "+k5")
	})
}

// Some proxies announce a body of unknown length and then send none.
func TestBodyOfUnknownLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{Heartbeat: time.Hour}}, "a")
		r.Prime("a", 1)
		head := announced("GET", "/v1/events?watch=a", "Transfer-Encoding: chunked")
		live := r.dial(head + "0\r\n\r\n")
		readUntil(t, live, "end_of_snapshot")
		time.Sleep(2 * unary.BodyTimeout) // its deadline does not apply to the stream
		r.Commit("a", 2, gatewaytest.Resource("k", 2, "1"))
		readUntil(t, live, "upsert")
		live.Close()
		synctest.Wait()
		if n := r.gateway.admission.Count(); n != 0 {
			t.Errorf("%d streams are open after the client disconnected", n)
		}
		res, body, _ := r.dial(head + "5\r\nhello\r\n0\r\n\r\n").answer(t)
		if res.StatusCode != 400 || !strings.Contains(body, "has a body") {
			t.Errorf("with a body: %s %s", res.Status, body)
		}
		res, body, took := r.dial(head).answer(t)
		if res.StatusCode != http.StatusRequestTimeout || took != unary.BodyTimeout || !strings.Contains(body, "did not arrive") {
			t.Errorf("with a body that does not arrive: %s after %s: %s", res.Status, took, body)
		}
	})
}

// A body that does not arrive holds no connection, whatever was requested.
func TestNoBodyHoldsAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		for _, request := range []string{
			announced("GET", "/v1/events?watch=a", "Content-Length: 5"),
			announced("GET", "/v1/events?watch=a", "Transfer-Encoding: chunked"),
			announced("DELETE", "/v1/watches/a/resources/k", "Content-Length: 5"),
			announced("PUT", "/v1/watches/a/resources/k", "Content-Length: 5"), // 405
			announced("PUT", "/v1/watches/b/resources/k", "Content-Length: 5"), // 404
			announced("POST", "/v1/events", "Content-Length: 5"),
			announced("POST", "/nowhere", "Transfer-Encoding: chunked"),
		} {
			c := r.dial(request)
			began := time.Now()
			answer, _ := io.ReadAll(c)
			if took := time.Since(began); took > unary.BodyTimeout || len(answer) == 0 {
				t.Errorf("%.60q: held for %s, answer %q", request, took, answer)
			}
		}
	})
}

// TestBodyThatNeverEnds checks that the connection is not held forever.
func TestBodyThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		notes := newNotebook()
		if _, err := r.Registry.Add(streamConfig("notes", notes)); err != nil {
			t.Fatal(err)
		}
		c := r.dial("PUT /v1/watches/notes/resources/a HTTP/1.1\r\nHost: gateway\r\nContent-Length: 100\r\n\r\n{\"a\":")
		began := time.Now()
		res, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if took := time.Since(began); res.StatusCode != http.StatusRequestTimeout || took != unary.BodyTimeout {
			t.Errorf("%s after %s", res.Status, took)
		}
	})
}

// TestSlowWriter checks that the deadline of the body does not apply to the request.
func TestSlowWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		c := streamConfig("notes", newNotebook())
		c.Writer = slowWriter{c.Writer, 2 * unary.BodyTimeout}
		if _, err := r.Registry.Add(c); err != nil {
			t.Fatal(err)
		}
		conn := r.dial("PUT /v1/watches/notes/resources/a HTTP/1.1\r\nHost: gateway\r\nContent-Length: 2\r\n\r\n{}")
		res, err := http.ReadResponse(conn.Reader, nil)
		if err != nil || res.StatusCode != 201 {
			t.Fatalf("PUT: %v %v", res, err)
		}
		res.Body.Close()
	})
}

// slowWriter is a writer that takes a long time.
type slowWriter struct {
	stream.Writer
	delay time.Duration
}

// Put implements stream.Writer.
func (s slowWriter) Put(ctx context.Context, r stream.PutRequest) (stream.Resource, bool, error) {
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
		return stream.Resource{}, false, ctx.Err()
	}
	return s.Writer.Put(ctx, r)
}

// To a proxy on the way, a request with both Transfer-Encoding and Content-Length may
// be two requests (RFC 9112, section 6.1). net/http hides the second header, so the
// connection is closed after any chunked body.
func TestAttackTwoLengthsCloseTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1)
		const smuggled = "GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n"
		for _, framing := range []string{
			"Transfer-Encoding: chunked\r\nContent-Length: 5",
			"Content-Length: 5\r\nTransfer-Encoding: chunked",
			"Transfer-Encoding: chunked",
		} {
			for request, status := range map[string]int{
				"GET /healthz": 200, "GET /v1/watches": 200, "GET /nothing": 404, "PUT /healthz": 405, "PUT /v1/watches/a/resources/k": 405,
			} {
				method, path, _ := strings.Cut(request, " ")
				c := r.dial(announced(method, path, framing) + "0\r\n\r\n" + smuggled)
				if res, body, _ := c.answer(t); res.StatusCode != status || !res.Close {
					t.Errorf("%s, %q: %s, closed %t: %s", request, framing, res.Status, res.Close, body)
				}
				rest, err := io.ReadAll(c)
				if err != nil || len(rest) > 0 {
					t.Errorf("%s, %q: after the answer %.100q, %v", request, framing, rest, err)
				}
			}
		}
		// HTTP/1.0 has no Transfer-Encoding, and net/http drops it.
		c := r.dial("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled)
		if res, _, _ := c.answer(t); res.StatusCode != 200 {
			t.Errorf("HTTP/1.0: %s", res.Status)
		}
		if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
			t.Errorf("HTTP/1.0: after the answer %.100q, %v", rest, err)
		}
	})
}
