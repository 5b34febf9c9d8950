package kubernetes

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

func TestStreamingList(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.initial = stalls(line(added, widget("a", 6)), line(added, widget("b", 5)), line(modified, widget("a", 8)), markerAt(8),
			line(deleted, widget("b", 9)), bookmarkAt(12))
		r := f.start(nil)
		r.wantState(12, "a")
		commits := r.Commits()
		if len(commits) != 3 || !commits[0].Snapshot || commits[0].Revision != 8 || len(commits[0].State) != 2 {
			t.Errorf("commits are %+v, want a snapshot of two at 8, a deletion at 9 and a bookmark at 12", commits)
		}
		f.wantRequests("head, initial")
		r.stop()
	})
}

func TestEmptyStreamingList(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.initial = stalls(markerAt(7))
		r := f.start(nil)
		r.wantState(7)
		r.wantResets(1)
		r.stop()
	})
}

// olderServers are the answers of servers without the streaming list.
var olderServers = map[string]struct {
	initial []string
	refusal string
	code    int
	after   time.Duration // until it is noticed
}{
	"refused":             {code: 422, refusal: status(422, "Invalid", `sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch`)},
	"a bad request":       {code: 400, refusal: status(400, "BadRequest", `unknown parameter`)},
	"silence":             {initial: []string{line(added, widget("a", 5))}, after: markerPatience},
	"silence, and empty":  {after: markerPatience},
	"a bookmark, no mark": {initial: []string{line(added, widget("a", 5)), bookmarkAt(5)}},
}

func TestServersWithoutStreamingList(t *testing.T) {
	for name, server := range olderServers {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fake) {
				f.initial = stalls(server.initial...)
				if server.code != 0 {
					f.initial = replies(server.code, server.refusal)
				}
				f.list = replies(200, listOf(7, "", widget("a", 5), widget("b", 6)))
				f.watch = stalls()
				r := f.start(nil)
				r.after(server.after)
				r.wantState(7, "a", "b")
				f.wantRequests("head, initial, list, watch 7")
				r.stop()
				f.head = replies(200, listOf(7, ""))
				r = f.start(nil) // it is remembered
				r.wantState(7, "a", "b")
				f.wantRequests("head, list, watch 7")
				r.stop()
			})
		})
	}
}

// TestWatchOfAnOldServerThatRunsOut: no marker and no silence, up to the end.
func TestWatchOfAnOldServerThatRunsOut(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.source.config.watchFor = 20 * time.Second
		f.initial = replies(200, "")
		r := f.start(nil)
		if err := r.end(); err == nil || !strings.Contains(err.Error(), "in the middle of the snapshot") {
			t.Errorf("a watch that ends at once gives %v, want an error", err)
		}
		if f.source.paged {
			t.Error("a server that ended a watch early counts as one without streaming lists")
		}
	})
}

// TestMistakeInARequestIsNotAnOldServer: a mistake is one for a list too.
func TestMistakeInARequestIsNotAnOldServer(t *testing.T) {
	inBubble(t, func(f *fake) {
		refusal := replies(400, status(400, "BadRequest", `field label not supported: spec.x`))
		f.initial, f.list = refusal, refusal
		if err := f.start(nil).end(); err == nil || !strings.Contains(err.Error(), "field label not supported: spec.x") {
			t.Errorf("error %v, want the server's", err)
		}
		if f.source.paged {
			t.Error("it is remembered as a server without streaming lists")
		}
	})
}

func TestPages(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.source.paged = true
		f.list = inTurn(
			replies(200, listOf(9, "next", widget("a", 5), `{"metadata":{"name":"b","resourceVersion":"6"}}`)),
			replies(200, listOf(9, "", widget("c", 7))))
		f.watch = stalls()
		r := f.start(nil)
		r.wantState(9, "a", "b", "c")
		f.wantRequests("head, list, list next, watch 9")
		r.stop()
	})
}

// TestPagesThatExpire: pages read so far are discarded, since their objects may
// be gone.
func TestPagesThatExpire(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.source.paged = true
		f.list = inTurn(
			replies(200, listOf(9, "next", widget("a", 5), widget("gone", 6))),
			replies(410, status(410, "Expired", "The provided continue parameter is too old")),
			replies(200, listOf(11, "", widget("a", 5), widget("c", 11))))
		f.watch = stalls()
		r := f.start(nil)
		r.wantState(11, "a", "c")
		f.wantRequests("head, list, list next, list, watch 11")
		r.stop()
	})
}

// TestTooLargeResourceVersion: a server that lags behind its storage reports
// that.
func TestTooLargeResourceVersion(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.initial = inTurn(
			sends(line(failed, `{"kind":"Status","code":504,"reason":"Timeout","message":"Too large resource version: 9, current: 5","details":{"retryAfterSeconds":3}}`)),
			stalls(markerAt(9)))
		r := f.start(nil)
		if err := r.end(); err == nil || !strings.Contains(err.Error(), "Too large resource version") {
			t.Errorf("error %v, want the server's", err)
		}
		began := time.Now()
		r = f.start(nil)
		r.after(3 * time.Second)
		r.wantState(9)
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("it waited %v, want the requested 3s", waited)
		}
		r.stop()
	})
}

func TestInvalidAnswers(t *testing.T) {
	for name, lines := range map[string][]string{
		"no JSON":                  {`HELLO`},
		"no event":                 {`[1,2]`},
		"another type":             {line("RENAMED", widget("a", 5))},
		"no number":                {line(added, `{"metadata":{"name":"a","resourceVersion":"five"}}`)},
		"no resourceVersion":       {line(added, `{"metadata":{"name":"a"}}`)},
		"resourceVersion 0":        {line(added, `{"metadata":{"name":"a","resourceVersion":"0"}}`)},
		"no name":                  {line(added, `{"metadata":{"resourceVersion":"5"}}`)},
		"no object":                {line(added, `7`)},
		"a bookmark of nothing":    {line(bookmark, `{}`)},
		"a bookmark of no object":  {line(bookmark, `7`)},
		"an error without a cause": {line(failed, `{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fake) {
				f.initial = stalls(lines...)
				if err := f.start(nil).end(); !errors.Is(err, stream.ErrInvalid) {
					t.Errorf("error %v, want one that wraps %q", err, stream.ErrInvalid)
				}
			})
		})
	}
}

func TestInvalidList(t *testing.T) {
	for name, body := range map[string]string{"HTML": "<html>", "no revision": `{"kind":"WidgetList","items":[]}`} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fake) {
				f.source.paged, f.list = true, replies(200, body)
				if err := f.start(nil).end(); !errors.Is(err, stream.ErrInvalid) {
					t.Errorf("error %v, want one that wraps %q", err, stream.ErrInvalid)
				}
			})
		})
	}
}
