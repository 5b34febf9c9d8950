package session

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
)

func TestStreamRequest(t *testing.T) {
	header := http.Header{"Last-Event-Id": {"a@e1-7,elsewhere@e1-9"}}
	req, p := ParseRequest("watch=a&watch=b&until=end_of_snapshot&deletes=1&prefix.b=x%2F&last_event_id=b@e1-8&format=ndjson", header, "")
	if p != nil {
		t.Fatal(p)
	}
	if req.Format != frame.NDJSON || !req.Until || !req.Deletes || len(req.Watches) != 2 {
		t.Fatalf("got %+v", req)
	}
	a, b := req.Watches[0], req.Watches[1]
	if a.Name != "a" || a.resume == nil || a.resume.Upserts != 7 {
		t.Errorf("a: got %+v, resume %v: want the position of the header", a, a.resume)
	}
	if b.Name != "b" || b.resume != nil || b.invalid {
		t.Errorf("b: got %+v: want no position, since the header wins", b)
	}
}

// TestPositionsOfPolyfills: what an EventSource that cannot send the header adds to its URL when it
// comes back is taken, since an answer other than 200 ends it for good.
func TestPositionsOfPolyfills(t *testing.T) {
	for _, test := range []struct {
		client, query, header string
		want                  uint64
	}{
		{"event-source-polyfill", "watch=a&lastEventId=a%40e1-7", "", 7},
		{"event-source-polyfill, whose page gave a position", "&watch=a&last_event_id=a@e1-5&lastEventId=a%40e1-7", "", 7},
		{"event-source-polyfill, configured for Mercure", "watch=a&Last-Event-ID=a%40e1-7", "", 7},
		{"Mercure's parameter", "watch=a&lastEventID=a%40e1-7", "", 7},
		{"reconnecting-eventsource, whose page gave a position", "watch=a&lastEventId=a@e1-5&lastEventId=a%40e1-7", "", 7},
		{"reconnecting-eventsource, whose EventSource came back by itself", "watch=a&lastEventId=a@e1-5", "a@e1-7", 7},
		{"the same position under two names", "watch=a&lastEventId=a@e1-7&Last-Event-ID=a@e1-7", "", 7},
		{"two names, and the header", "watch=a&lastEventId=a@e1-5&Last-Event-ID=a@e1-6", "a@e1-7", 7},
		{"a polyfill that has no position yet", "watch=a&last_event_id=a@e1-7&lastEventId=", "", 7},
	} {
		req, p := ParseRequest(test.query, http.Header{"Last-Event-Id": {test.header}}, "")
		if p != nil {
			t.Errorf("%s: refused: %v", test.client, p)
			continue
		}
		if at := req.Watches[0].resume; at == nil || at.Upserts != test.want {
			t.Errorf("%s: resumes at %v, want %d", test.client, at, test.want)
		}
	}
}

func TestPositionsThatCannotBeRead(t *testing.T) {
	for _, id := range []string{"x", "a@", "a@e1-01", "a@e1-5/4", "a@e1-7,", "a@e1-7,a@e1-8", "a@e1-18446744073709551616", "\u00e4@e1-1", "a@e1-1\x00"} {
		req, p := ParseRequest("watch=a&last_event_id="+url.QueryEscape(id), nil, "")
		if p != nil {
			t.Errorf("%q: refused: %v", id, p)
			continue
		}
		if !req.Watches[0].invalid || req.Watches[0].resume != nil {
			t.Errorf("%q: got %+v: want an invalid position", id, req.Watches[0])
		}
	}
}

func TestBadParameters(t *testing.T) {
	long := strings.Repeat("x", 64)
	for _, test := range []struct {
		query, name       string // name of the watch in the path
		status            int
		parameter, detail string
	}{
		{"", "", 400, "watch", "?watch=NAME"},
		{"watch=a&watch=a", "", 400, "watch", "twice"},
		{"watch=a", "a", 400, "watch", "/v1/events"},
		{"wach=a", "", 400, "wach", `did you mean "watch"?`},
		{"watch=a&zzzzzzzz=1", "", 400, "zzzzzzzz", "want watch, fields, by, keys, first, last_event_id"},
		{"watch=a&Prefix=1", "", 400, "Prefix", `did you mean "prefix"?`},
		{"watch=a&until=forever", "", 400, "until", "want end_of_snapshot"},
		{"watch=a&deletes=yes", "", 400, "deletes", "want 1"},
		{"watch=a&until=", "", 400, "until", "want end_of_snapshot"},
		{"watch=a&until=end_of_snapshot&until=end_of_snapshot", "", 400, "until", "2 times"},
		{"watch=a&format=xml", "", 400, "format", "want sse or ndjson"},
		{"watch=a&format=sse&format=ndjson", "", 400, "format", "2 times"},
		{"watch=a&last_event_id=a&last_event_id=b", "", 400, "last_event_id", "2 times"},
		{"watch=a&lastEventId=a@e1-7&Last-Event-ID=a@e1-8", "", 400, "Last-Event-ID", `"lastEventId" and "Last-Event-ID" name different positions`},
		{"watch=a&last_event=a", "", 400, "last_event", `did you mean "last_event_id"?`},
		{"watch=a&lasteventid=a", "", 400, "lasteventid", `did you mean "last_event_id"?`},
		{"watch=a&prefix=a&prefix=b", "", 400, "prefix", "2 times"},
		{"watch=a&watch=b&prefix=x", "", 400, "prefix", "prefix.a="},
		{"watch=a&prefix.c=x", "", 400, "prefix.c", "not part of this stream"},
		{"watch=a&prefix.=x", "", 400, "prefix.", "not part of this stream"},
		{"watch=a&prefix=x&prefix.a=x", "", 400, "prefix.a", "want one of them"},
		{"watch=a&watch=b&labels=x", "", 400, "labels", "labels.a="},
		{"watch=a&watch=b&fields=x&fields=y", "", 400, "fields", "fields.a="},
		{"watch=a&filter.c=x", "", 400, "filter.c", "not part of this stream"},
		{"watch=a&filter.c=", "", 400, "filter.c", "not part of this stream"},
		{"watch=a&filter.a=x&filter.a=y", "", 400, "filter.a", "2 times"},
		{"watch=a&fields=x&fields.a=x", "", 400, "fields.a", "want one of them"},
		{"watch=a&filtr=x", "", 400, "filtr", `did you mean "filter"?`},
		{"watch=a&watch.a=x", "", 400, "watch.a", `did you mean "watch"?`},
		{"watch=a&x=%zz", "", 400, "query", "cannot be read"},
		{"watch=a&=1", "", 400, "query", "without the name"},
		{"watch=a;format=sse", "", 400, "query", "cannot be read"},
		{"watch=a&last_event_id=" + strings.Repeat("x", 1025), "", 414, "last_event_id", "at most 1024"},
		{"watch=" + strings.Join([]string{long + "1", long + "2", long + "3", long + "4", long + "5", long + "6", long + "7", long + "8", long + "9"}, "&watch="), "", 414, "watch", "longer than 1024 bytes"},
	} {
		_, p := ParseRequest(test.query, nil, test.name)
		if p == nil {
			t.Errorf("%s: not refused", test.query)
			continue
		}
		if p.Status != test.status || p.Parameter != test.parameter || !strings.Contains(p.Detail, test.detail) {
			t.Errorf("%s: got %d, parameter %q, %q", test.query, p.Status, p.Parameter, p.Detail)
		}
	}
}

// An accepted request can be served: it names watches, each once, and its ids
// cannot become too long. The refusal names the invalid parameter.
func FuzzStreamRequest(f *testing.F) {
	f.Add("watch=a&watch=b&prefix.a=x", "text/event-stream", "a@e1-7,b@e1-8/9", "")
	f.Add("until=end_of_snapshot&format=ndjson", "*/*;q=0.1", "", "a")
	f.Add("watch=%ff&last_event_id=%00", "text/*, application/x-ndjson;q=2", "\xff", "")
	f.Add("filter.=&watch=&watch=", "application/json", ",", "")
	f.Add("=", "0", "0", "0")
	f.Add("lastEventId=a@e1-7&Last-Event-ID=&lastEventID=a@e1-8", "", "", "a")
	f.Add("watch=a.b&filter.a.b=x&fields.a.b=x&fields.a.b=y", "", "", "")
	f.Fuzz(func(t *testing.T, query, accept, id, name string) {
		header := http.Header{"Accept": {accept}, "Last-Event-Id": {id}}
		req, p := ParseRequest(query, header, name)
		if p != nil {
			if p.Status != 400 && p.Status != 406 && p.Status != 414 || p.Parameter == "" || p.Detail == "" {
				t.Fatalf("problem %+v: want 400, 406 or 414 that names the parameter", p)
			}
			return
		}
		checkRequest(t, req)
	})
}

func checkRequest(t *testing.T, req Request) {
	seen := map[string]bool{}
	length := len(req.Watches) - 1
	if len(req.Narrowings) != len(req.Watches) {
		t.Fatalf("%d narrowings of %d watches", len(req.Narrowings), len(req.Watches))
	}
	for _, w := range req.Watches {
		if seen[w.Name] || w.resume != nil && (w.invalid || w.resume.Watch != w.Name) {
			t.Fatalf("watch %+v of %+v", w, req)
		}
		seen[w.Name] = true
		length += stream.LongestPosition(w.Name)
	}
	if len(seen) == 0 || length > stream.MaxPositionLength || req.Format == 0 {
		t.Fatalf("request %+v: ids of up to %d bytes", req, length)
	}
}
