package gateway

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// live is a stream that somebody follows. Owned by its test.
type live struct {
	t      *testing.T
	who    string
	hidden []string
	lines  *bufio.Scanner
	leave  func()
	seen   []string
}

// follow opens a stream of somebody, compressed or not.
func (r *guarded) follow(who, path, encoding string) *live {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+path, http.NoBody)
	if err != nil {
		r.t.Fatal(err)
	}
	if text := r.tokens[who]; text != "" {
		req.Header.Set("Authorization", "Bearer "+text)
	}
	req.Header.Set("Accept-Encoding", encoding)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { cancel(); res.Body.Close() })
	body := io.Reader(res.Body)
	if res.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(res.Body); err != nil {
			r.t.Fatal(err)
		}
	} else if encoding == "gzip" {
		r.t.Errorf("%s: the stream is not compressed", path)
	}
	return &live{leave: cancel, t: r.t, who: who, hidden: hides[who], lines: bufio.NewScanner(body)}
}

// until reads up to a line with a text. Nothing that is hidden may come before.
func (l *live) until(text string) {
	l.t.Helper()
	for l.lines.Scan() {
		line := l.lines.Text()
		l.seen = append(l.seen, line)
		for _, part := range l.hidden {
			if strings.Contains(line, part) {
				l.t.Fatalf("%s: %q is in %s", l.who, part, line)
			}
		}
		if strings.Contains(line, text) {
			return
		}
	}
	l.t.Fatalf("%s: no %s after %q: %v", l.who, text, l.seen, l.lines.Err())
}

func (r *guarded) put(key, value string) {
	r.t.Helper()
	if got := r.send(http.MethodPut, "/v1/watches/orders/resources/"+key, value, r.as("sam")...); got.StatusCode >= 300 {
		r.t.Fatalf("%s %s", got.Status, got.text)
	}
}

// manySkipped matches a bookmark after more than one change.
var manySkipped = regexp.MustCompile(`"skipped":(?:[2-9]|[0-9]{2})`)

// TestStreamsOfOneWatchAreApart checks that streams of one watch which are written at the
// same time, with pieces that are compressed once for several of them, have each what its
// client may see, and that a change which is hidden leaves no trace but a revision.
func TestStreamsOfOneWatchAreApart(t *testing.T) {
	for _, encoding := range []string{"identity", "gzip"} {
		t.Run(encoding, func(t *testing.T) {
			r := newGuarded(t, nil)
			var all []*live
			for _, who := range []string{"sam", "agent", "ann", "outsider", "sam", "agent", "ann"} {
				for _, path := range []string{"/v1/watches/orders/events?format=ndjson", "/v1/events?watch=orders", "/v1/watches/orders/events?format=ndjson&filter=true"} {
					l := r.follow(who, path, encoding)
					l.until("end_of_snapshot")
					all = append(all, l)
				}
			}
			for i := range 20 {
				r.put("o_2", fmt.Sprintf(`{"tenant":"globex","owner":"bob","status":"is_lost","margin":"s3cret-2","n":%d}`, i))
			}
			r.put("o_1", `{"tenant":"acme","owner":"ann","status":"is_last","eta":9,"margin":"s3cret-1"}`)
			for _, l := range all {
				switch l.who {
				case "sam":
					l.until("is_last")
				case "outsider": // waits for nothing, and sees nothing
				case "agent":
					l.until(`"value":{"status":"is_last","eta":9}`)
				default:
					l.until(`"margin":"s3cret-1"`)
				}
				for _, line := range l.seen {
					if l.who != "sam" && manySkipped.MatchString(line) {
						t.Errorf("%s: hidden changes are counted: %s", l.who, line)
					}
				}
			}
		})
	}
}

// TestResumeTellsNothing checks that who comes back, with any position of their own, learns
// nothing of resources that they never saw, also once these are gone.
func TestResumeTellsNothing(t *testing.T) {
	r := newGuarded(t, nil)
	for _, who := range []string{"agent", "ann", "outsider"} {
		before := between(r.get("/v1/watches/orders/changes?wait=1ms", r.as(who)...).text, `"position":"`, `"`)
		key := "o_4_" + who
		r.put(key, `{"tenant":"globex","owner":"bob","status":"is_lost","margin":"s3cret-2"}`)
		r.send(http.MethodDelete, "/v1/watches/orders/resources/"+key, "", r.as("sam")...).want(t, 200, "")
		r.put("o_3", orders["o_3"])
		for _, path := range []string{"changes?wait=1ms&after=", "events?until=end_of_snapshot&last_event_id=", "events?until=end_of_snapshot&format=ndjson&last_event_id="} {
			got := r.get("/v1/watches/orders/"+path+before, r.as(who)...)
			r.conceals(who, got, append([]string{"o_4"}, hides[who]...))
			if got.StatusCode != 200 {
				t.Errorf("%s: %s %s", who, got.Status, got.text)
			}
		}
	}
}

// TestSeveralWatchesNeedThemAll checks that one hidden watch hides a stream of several as a
// whole, before anything is sent.
func TestSeveralWatchesNeedThemAll(t *testing.T) {
	r := newGuarded(t, nil)
	for _, query := range []string{"watch=orders&watch=vault", "watch=vault&watch=orders", "watch=orders&watch=vault-eu", "watch=orders&watch=closed"} {
		got := r.get("/v1/events?until=end_of_snapshot&"+query, r.as("ann")...)
		if got.StatusCode != 404 || strings.Contains(got.text, "o_1") {
			t.Errorf("%s: %s %s", query, got.Status, got.text)
		}
	}
	got := r.get("/v1/events?until=end_of_snapshot&watch=orders&watch=vault", r.as("sam")...)
	if got.StatusCode != 200 || !strings.Contains(got.text, `"watch":"vault"`) {
		t.Errorf("staff: %s %s", got.Status, got.text)
	}
}

// TestWritesSeeNoMoreThanReads checks that the answer to a write has as much of a resource
// as its writer may read, over HTTP and in the revision that it is stored with.
func TestAllowSaysWhatTheRulesDo(t *testing.T) {
	r := newGuarded(t, nil)
	const path = "/v1/watches/orders/resources/"
	r.send("PUT", path+"o_5", `{"owner":"ann","tenant":"acme","status":"is_new"}`, r.as("ann")...).want(t, 201, "")
	for name, c := range map[string]struct {
		who, key, allow string
		status          int
	}{
		"hers":              {"ann", "o_5", "GET, HEAD, PUT, DELETE", 200},
		"partly seen":       {"agent", "o_1", "GET, HEAD", 200},
		"hidden":            {"ann", "o_2", "", 404},
		"missing":           {"ann", "o_9", "", 404},
		"of a staff member": {"sam", "o_2", "GET, HEAD, PUT, DELETE", 200},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			got := r.send(method, path+c.key, "", r.as(c.who)...)
			if got.StatusCode != c.status || c.allow != "" && got.Header.Get("Allow") != c.allow {
				t.Errorf("%s, %s: %d and %q, want %d and %q", name, method, got.StatusCode, got.Header.Get("Allow"), c.status, c.allow)
			}
		}
	}
	hidden, missing := r.get(path+"o_2", r.as("ann")...), r.get(path+"o_9", r.as("ann")...)
	if hidden.Header.Get("Allow") != missing.Header.Get("Allow") {
		t.Errorf("hidden %q, missing %q", hidden.Header.Get("Allow"), missing.Header.Get("Allow"))
	}
}

func TestWritesSeeNoMoreThanReads(t *testing.T) {
	r := newGuarded(t, nil)
	const path = "/v1/watches/orders/resources/"
	mine := `{"owner":"ann","tenant":"acme","status":"is_new"}`
	r.send("PUT", path+"o_5", mine, append(r.as("ann"), "If-None-Match: *")...).want(t, 201, "")
	for name, c := range map[string]struct {
		who, method, key, body, header string
		status                         int
	}{
		"gives it to another":        {"ann", "PUT", "o_5", `{"owner":"bob"}`, "X: y", 403},
		"takes what is hidden":       {"ann", "PUT", "o_2", `{"owner":"ann"}`, "X: y", 404},
		"takes it as new":            {"ann", "PUT", "o_2", `{"owner":"ann"}`, "If-None-Match: *", 404},
		"takes it at any revision":   {"ann", "PUT", "o_2", `{"owner":"ann"}`, `If-Match: "2"`, 412},
		"removes what is hidden":     {"ann", "DELETE", "o_2", "", "X: y", 200},
		"writes what is seen partly": {"agent", "PUT", "o_1", `{"owner":"agent"}`, "X: y", 403},
		"deletes it":                 {"agent", "DELETE", "o_1", "", "X: y", 403},
		"an owner twice":             {"ann", "PUT", "o_6", `{"owner":"ann","owner":"bob"}`, "X: y", 403},
		"an owner that is no text":   {"ann", "PUT", "o_6", `{"owner":["ann"]}`, "X: y", 403},
		"no object":                  {"ann", "PUT", "o_6", `"ann"`, "X: y", 403},
	} {
		got := r.send(c.method, path+c.key, c.body, append(r.as(c.who), c.header)...)
		got.want(t, c.status, "")
		r.conceals(c.who, reply{got.Response, strings.ReplaceAll(got.text, c.key, "")}, hides[c.who])
		if c.method == "DELETE" && c.status == 200 && got.text != `{"deleted":false}`+"\n" {
			t.Errorf("%s: %s", name, got.text)
		}
	}
	for key, value := range map[string]string{"o_1": orders["o_1"], "o_2": orders["o_2"], "o_5": mine} {
		if got := r.get(path+key, r.as("sam")...); !strings.Contains(got.text, `"value":`+value+"}") {
			t.Errorf("%s was changed: %s", key, got.text)
		}
	}
	r.get(path+"o_6", r.as("sam")...).want(t, 404, "")
}
