package gateway

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

const primedCalls = "reset e\nupsert \"x\" 1 1\nupsert \"y\" 2 1\ncommit 2\n"

// transcripts are answers of an upstream, and their results.
var transcripts = map[string]struct {
	resume stream.Resume
	turn   turn
	calls  string // of the Sink
	err    string // is in the error; "": there is none
	is     error  // the error is one of these; nil: any
}{
	"snapshot and changes": {
		turn: replies(primed(), upsert("x", 3, `{ "b": 9007199254740993, "a": 1.0 }`, "w@e-3"),
			remove("y", 4, ""), upsert("z", 4, `"z"`, "w@e-4"), goodbye("draining", 0)),
		calls: primedCalls + `upsert "x" 3 { "b": 9007199254740993, "a": 1.0 }
commit 3
delete "y" 4
upsert "z" 4 "z"
commit 4`,
	},
	"heartbeats, comments and unknown events are nothing": {
		turn:  replies(primed(), beat, beat, event("novelty", `,"n":1`, ""), ": a comment\n\n", bookmark(7, "w@e-7"), goodbye("max_age", 4000)),
		calls: primedCalls + "commit 7",
	},
	"an id with the status behind end_of_snapshot": {
		turn: replies(hello, status("priming", "slow", ""), reset("w@e-0/1"), upsert("x", 1, "1", ""), endOfSnapshot(1, 1, ""),
			status("in_sync", "", "w@e-1"), goodbye("draining", 0)),
		calls: "status priming slow\nreset e\nupsert \"x\" 1 1\ncommit 1\nstatus in_sync ",
	},
	"a value on several data lines": {
		turn: replies(hello, reset("w@e-0/1"),
			"event: upsert\ndata: {\"type\":\"upsert\",\"watch\":\"w\",\"key\":\"x\",\"revision\":\"1\",\"value\":{\ndata:   \"a\": 1.50\ndata: }}\n\n",
			endOfSnapshot(1, 1, "w@e-1"), goodbye("draining", 0)),
		calls: "reset e\nupsert \"x\" 1 {\"a\":1.50}\ncommit 1",
	},
	"keys and values in base64": {
		turn: replies(hello, reset("w@e-0/1"),
			event("upsert", `,"key":"//4=","revision":"1","key_encoding":"base64","encoding":"base64","value":"AAE="`, ""),
			endOfSnapshot(1, 1, "w@e-1"), goodbye("draining", 0)),
		calls: "reset e\nupsert \"\\xff\\xfe\" 1 \"AAE=\" base64\ncommit 1",
	},
	"goes on after a position": {
		resume: stream.Resume{Epoch: "e", Revision: 2},
		turn: replies(hello, remove("x", 5, "w@e-2/6"), upsert("z", 6, "1", "w@e-6"),
			event("end_of_snapshot", `,"revision":"6","count":2,"resumed":true`, "w@e-6"), goodbye("draining", 0)),
		calls: "delete \"x\" 5\nupsert \"z\" 6 1\ncommit 6\nstatus in_sync ",
	},
	"cannot go on": {
		resume: stream.Resume{Epoch: "old", Revision: 2},
		turn:   replies(primed(), goodbye("draining", 0)),
		calls:  strings.TrimSuffix(primedCalls, "\n"),
	},
	"reset in mid-snapshot": {
		turn:  replies(hello, reset("w@e-0/9"), upsert("old", 1, "1", "w@e-1/9"), primed()[len(hello):], goodbye("draining", 0)),
		calls: "reset e\nupsert \"old\" 1 1\n" + strings.TrimSuffix(primedCalls, "\n"),
	},
	"reset in another epoch, live": {
		turn:  replies(primed(), reset("w@f-0/1"), upsert("n", 1, "1", ""), endOfSnapshot(1, 1, "w@f-1"), goodbye("draining", 0)),
		calls: primedCalls + "reset f\nupsert \"n\" 1 1\ncommit 1",
	},
	"goodbye in mid-snapshot": {
		turn:  replies(hello, reset("w@e-0/2"), upsert("x", 1, "1", ""), goodbye("draining", 10)),
		calls: "reset e\nupsert \"x\" 1 1",
	},
	"catching up is one transaction": {
		turn: replies(primed(), status("catching_up", "too slow", ""), remove("x", 8, "w@e-2/9"), upsert("a", 5, "1", "w@e-5/9"),
			upsert("b", 9, "1", "w@e-9"), bookmark(9, ""), status("in_sync", "", "w@e-9"), goodbye("draining", 0)),
		calls: primedCalls + "delete \"x\" 8\nupsert \"a\" 5 1\nupsert \"b\" 9 1\ncommit 9\nstatus in_sync ",
	},
	"freshness of the upstream": {
		turn:  replies(primed(), status("stale", "its own is lost", ""), status("novel", "", ""), status("in_sync", "", ""), goodbye("draining", 0)),
		calls: primedCalls + "status stale its own is lost\nstatus in_sync ",
	},
	"deletes without a revision of their own": {
		turn:  replies(primed(), remove("x", 1, "w@e-2"), goodbye("draining", 0)),
		calls: primedCalls + "delete \"x\" 1\ncommit 2",
	},

	"half an event": {
		turn:  replies(primed(), upsert("z", 3, "1", "w@e-3")[:60]),
		calls: strings.TrimSuffix(primedCalls, "\n"), err: "without a goodbye",
	},
	"half an event, then the connection breaks": {
		turn:  breaks(primed(), strings.TrimSuffix(upsert("z", 3, "1", "w@e-34"), "4\n\n")),
		calls: strings.TrimSuffix(primedCalls, "\n"), err: "unexpected EOF",
	},
	"an event that is too large": {
		turn:  replies(primed(), upsert("z", 3, `"`+strings.Repeat("x", 5000)+`"`, "w@e-3")),
		calls: strings.TrimSuffix(primedCalls, "\n"),
		err:   "an event has more than 4096 bytes; want a larger max_event_bytes, or smaller values", is: stream.ErrInvalid,
	},
	"no reset": {
		turn: replies(hello, upsert("x", 1, "1", "")),
		err:  `gateway http://gateway.test, watch "w", event 1: a change of key "x" before reset: want reset first`, is: stream.ErrInvalid,
	},
	"end_of_snapshot without reset": {turn: replies(hello, endOfSnapshot(1, 0, "w@e-1")), err: "want reset first", is: stream.ErrInvalid},
	"reset without an id": {
		turn: replies(hello, reset("")), err: "reset without a position: want an id that names the epoch", is: stream.ErrInvalid},
	"an id that is none": {
		turn: replies(hello, reset("w@e")), err: `position "w@e": want watch@epoch-revision`, is: stream.ErrInvalid},
	"another epoch without a reset": {
		turn:  replies(primed(), upsert("z", 3, "1", "w@f-3")),
		calls: strings.TrimSuffix(primedCalls, "\n"), err: `position "w@f-3": want epoch "e", or a reset before`, is: stream.ErrInvalid,
	},
	"fewer resources than counted": {
		turn:  replies(hello, reset("w@e-0/2"), upsert("x", 1, "1", ""), endOfSnapshot(2, 2, "w@e-2")),
		calls: "reset e\nupsert \"x\" 1 1", err: "end_of_snapshot counts 2 resources, 1 came", is: stream.ErrInvalid,
	},
	"no JSON":      {turn: replies(hello, "event: reset\ndata: {\n\n"), err: "the data of a reset event is not JSON", is: stream.ErrInvalid},
	"another type": {turn: replies(hello, "event: reset\ndata: {\"type\":\"upsert\"}\n\n"), err: `a reset event has the type "upsert"`, is: stream.ErrInvalid},
	"revision that is none": {
		turn:  replies(hello, reset("w@e-0/1"), event("upsert", `,"key":"x","revision":"-1","value":1`, "")),
		calls: "reset e", err: `revision "-1": want a decimal number in quotation marks`, is: stream.ErrInvalid,
	},
	"revision 0": {
		turn: replies(hello, reset("w@e-0/1"), upsert("x", 0, "1", "")), calls: "reset e",
		err: `revision of key "x" is 0: want 1 or more`, is: stream.ErrInvalid,
	},
	"no value": {
		turn:  replies(hello, reset("w@e-0/1"), event("upsert", `,"key":"x","revision":"1"`, "")),
		calls: "reset e", err: `value of key "x" is "": want JSON in UTF-8`, is: stream.ErrInvalid,
	},
	"a value that is not UTF-8": {
		turn:  replies(hello, reset("w@e-0/1"), upsert("x", 1, "\"\xff\"", "")),
		calls: "reset e", err: `value of key "x" is "\"\xff\"": want JSON in UTF-8`, is: stream.ErrInvalid,
	},
	"an encoding that is not known": {
		turn:  replies(hello, reset("w@e-0/1"), event("upsert", `,"key":"x","revision":"1","encoding":"hex","value":"00"`, "")),
		calls: "reset e", err: `encoding of key "x" is "hex": want "base64" or nothing`, is: stream.ErrInvalid,
	},
	"a key that is no base64": {
		turn:  replies(hello, reset("w@e-0/1"), event("delete", `,"key":"*","key_encoding":"base64","revision":"1"`, "")),
		calls: "reset e", err: `key "*"`, is: stream.ErrInvalid,
	},

	"no stream of events": {
		turn: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		err:  `the answer is "text/html; charset=utf-8": is this a gateway?; want the URL of a gateway, which answers with text/event-stream`,
	},
	"not authorised": {
		turn: refuses(401, "no token"),
		err:  `gateway http://gateway.test, watch "w": 401 Unauthorized: no token; want a token in token_file, or a header, that it accepts`,
	},
	"forbidden":      {turn: refuses(403, "not yours"), err: "403 Forbidden: not yours; want a token, or a header, that may read this watch"},
	"no such path":   {turn: refuses(404, "nothing here"), err: "404 Not Found: nothing here; want the URL of a gateway, without /v1"},
	"not acceptable": {turn: refuses(406, "only HTML"), err: "406 Not Acceptable: only HTML; want the URL of a gateway"},
	"too many":       {turn: refuses(429, "slow down"), err: "429 Too Many Requests: slow down"},
	"unavailable":    {turn: refuses(503, "not now"), err: "503 Service Unavailable: not now"},
	"redirect": {
		turn: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.test/x", http.StatusFound)
		},
		err: `watch "w": the answer is a redirect to https://elsewhere.test/x: want the URL of the gateway itself`,
	},
	"overloaded": {turn: replies("retry: 1\n\n", goodbye("overloaded", 10)), err: "goodbye, overloaded"},
	"revoked":    {turn: replies(primed(), goodbye("revoked", 10)), calls: strings.TrimSuffix(primedCalls, "\n"), err: "goodbye, revoked"},
	"removed":    {turn: replies(primed(), goodbye("watch_removed", 10)), calls: strings.TrimSuffix(primedCalls, "\n"), err: "goodbye, watch_removed"},
}

func TestTranscripts(t *testing.T) {
	for name, c := range transcripts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, u, stop := serve(t, Config{MaxEventBytes: 4096}, c.turn)
				defer stop()
				sink := &calls{}
				err := sourceOf(t, u, "w").Watch(t.Context(), c.resume, sink)
				if sink.String() != c.calls {
					t.Errorf("calls\n%s\nwant\n%s", sink, c.calls)
				}
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v\nwant  %s", err, c.err)
				}
				if c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("error %v, want one that wraps %q", err, c.is)
				}
			})
		})
	}
}

// sourceOf is a source as if it had been made long ago: no other one is expected.
func sourceOf(t *testing.T, u *Upstream, watch string) *Source {
	t.Helper()
	s, err := u.Source(watch, nil)
	if err != nil {
		t.Fatal(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.newest = time.Time{}
	return s
}
