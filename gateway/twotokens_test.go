package gateway

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// openStream opens a stream with a header, and returns its lines.
func openStream(t *testing.T, server *httptest.Server, header string) (status int, lines <-chan string) {
	t.Helper()
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/events?watch=orders&format=ndjson", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	name, value, _ := strings.Cut(header, ": ")
	ask.Header.Set(name, value)
	res, err := (&http.Client{Transport: server.Client().Transport}).Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	out := make(chan string, 100)
	go func() {
		defer close(out)
		for s := bufio.NewScanner(res.Body); s.Scan(); {
			out <- s.Text()
		}
	}()
	if res.StatusCode == http.StatusOK {
		<-out
	}
	return res.StatusCode, out
}

// last returns the last line of a stream, which must end.
func last(t *testing.T, lines <-chan string) (line string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case next, more := <-lines:
			if !more {
				return line
			}
			line = next
		case <-timeout:
			t.Fatal("the stream goes on")
		}
	}
}

// TestTwoTokensOfOnePrincipal share its limits, whichever of them opens a stream. The session of
// one ends without that of the other.
func TestTwoTokensOfOnePrincipal(t *testing.T) {
	r := newDoorRig(t, false, func(c *Config) { c.Access.Limits.Streams = 3 })
	one, other := r.jwt("eve", map[string]any{"n": 1, "groups": []string{"staff"}}), r.jwt("eve", map[string]any{"n": 2, "groups": []string{"staff"}})
	r.client.Jar = nil // each login is of a browser of its own
	session := func(token string) string {
		c := sessionCookie(t, r.send("POST", "/v1/session", "", bearer(token)))
		return "Cookie: " + c.Name + "=" + c.Value
	}
	first, second := session(one), session(other)
	var streams []<-chan string
	for _, with := range []string{first, second, bearer(one)} {
		status, lines := openStream(t, r.server, with)
		if status != http.StatusOK {
			t.Fatalf("%s: %d", with, status)
		}
		streams = append(streams, lines)
	}
	for _, with := range []string{first, second, bearer(one), bearer(other)} {
		if status, _ := openStream(t, r.server, with); status != http.StatusTooManyRequests {
			t.Errorf("beyond the limit of the principal: %d", status)
		}
	}
	if status, _ := openStream(t, r.server, bearer(r.jwt("bob", map[string]any{"groups": []string{"staff"}}))); status != http.StatusOK {
		t.Errorf("somebody else: %d", status)
	}
	r.send("DELETE", "/v1/session", "", first).want(t, 204, "")
	if got := last(t, streams[0]); !strings.Contains(got, `"revoked"`) {
		t.Errorf("the stream of the session that has ended: %q", got)
	}
	// There is one place again, and no more: the streams of the other session and of the token go on.
	status := 0
	for range 100 {
		if status, _ = openStream(t, r.server, second); status == http.StatusOK {
			break
		}
	}
	if beyond, _ := openStream(t, r.server, second); status != http.StatusOK || beyond != http.StatusTooManyRequests {
		t.Errorf("in place of the stream that has ended: %d, and one more: %d", status, beyond)
	}
	for with, want := range map[string]string{first: "401 Unauthorized", second: "jwt eve", bearer(one): "jwt eve", bearer(other): "jwt eve"} {
		if got := r.who(with); got != want {
			t.Errorf("%s: %s, want %s", with, got, want)
		}
	}
}
