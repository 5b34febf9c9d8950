package kubernetes

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/faults"
)

// scriptedFault is a wrong or hostile API server.
type scriptedFault struct {
	name, says string // see faults.Scripted
	script     func(f *fake)
}

// fromList has the source read lists in pages, with these answers.
func fromList(answer http.HandlerFunc) func(*fake) {
	return func(f *fake) { f.source.paged, f.list, f.watch = true, answer, stalls() }
}

// watched answers with an initial state at 7 and then with these events.
func watched(events ...string) func(*fake) {
	return func(f *fake) {
		f.initial = stalls(append([]string{line(added, widget("a", 5)), markerAt(7)}, events...)...)
	}
}

// large is an object of a size.
func large(name string, revision, size int) string {
	return strings.Replace(widget(name, revision), `"kind"`, `"x":"`+strings.Repeat("x", size)+`","kind"`, 1)
}

// mostSent is how many bytes, uncompressed, stand for what does not end: several times what the source
// may read. No fake time passes while they are read, so that nothing else would end the test of a
// source that reads on.
const mostSent = 64 << 20 // twice the memory of the watch

// writes answers with what a function writes, until the client is gone, or has been sent mostSent in
// all answers. Then it refuses to answer.
func writes(write func(send func(string) bool)) http.HandlerFunc {
	return unlessSent(func(w http.ResponseWriter, r *http.Request, left *atomic.Int64) {
		write(func(text string) bool {
			if left.Add(-int64(len(text))) < 0 {
				return false
			}
			_, err := fmt.Fprint(w, text)
			return err == nil && r.Context().Err() == nil
		})
	})
}

// unlessSent answers with what a function writes while something is left of mostSent.
func unlessSent(write func(w http.ResponseWriter, r *http.Request, left *atomic.Int64)) http.HandlerFunc {
	var left atomic.Int64
	left.Store(mostSent)
	return func(w http.ResponseWriter, r *http.Request) {
		if left.Load() < 0 {
			w.Header().Set("Retry-After", "60") // so that few more requests come in the time that the test takes
			replies(503, fmt.Sprintf("all %d bytes that stand for an answer without end were read", mostSent))(w, r)
			return
		}
		write(w, r, &left)
	}
}

// forEver sends something again and again, after a beginning.
func forEver(begin string, next func(i int) string) http.HandlerFunc {
	return writes(func(send func(string) bool) {
		for i, more := 0, send(begin); more; i++ {
			more = send(next(i))
		}
	})
}

// bomb is a small compressed answer that is large.
func bomb(begin string) http.HandlerFunc {
	return unlessSent(func(w http.ResponseWriter, _ *http.Request, left *atomic.Int64) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprint(z, begin)
		for chunk := strings.Repeat("x", 1<<20); left.Add(-int64(len(chunk))) >= 0; {
			if _, err := fmt.Fprint(z, chunk); err != nil {
				return
			}
		}
	})
}

// slowly sends a byte a second.
func slowly(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		for i := 0; i < len(text); i++ {
			fmt.Fprint(w, text[i:i+1])
			w.(http.Flusher).Flush()
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
				return
			}
		}
	}
}

// once answers with one handler, and then always with another.
func once(first, then http.HandlerFunc) http.HandlerFunc { return inTurn(first, then) }

func scriptedFaults() []scriptedFault {
	a, b := widget("a", 5), widget("b", 6)
	gone := status(410, "Expired", "too old resource version")
	endlessObject := func(begin string) http.HandlerFunc {
		return forEver(begin, func(int) string { return strings.Repeat("x", 64<<10) })
	}
	whole := replies(200, listOf(9, "", a))
	return []scriptedFault{
		{"valid page of 100 objects of 1 MB", "too large: what is being loaded", fromList(writes(func(send func(string) bool) {
			send(`{"kind":"WidgetList","metadata":{"resourceVersion":"9"},"items":[`)
			for i := 0; i < 100 && send(large(fmt.Sprintf("w%03d", i), 5, 1<<20)+","); i++ {
			}
			send(a + "]}")
		}))},
		{"list without end", "too large: what is being loaded", fromList(forEver(`{"kind":"WidgetList","items":[`, func(i int) string { return large(fmt.Sprintf("w%06d", i), 5, 10_000) + "," }))},
		{"initial events without end", "too large: what is being loaded", func(f *fake) {
			f.initial = forEver("", func(i int) string { return line(added, large(fmt.Sprintf("w%06d", i), 5, 10_000)) })
		}},
		{"object without end in a list", "too large: what is being loaded", fromList(endlessObject(`{"items":[{"x":"`))},
		{"object without end in a watch", "too large: what is being loaded", func(f *fake) {
			f.initial = endlessObject(line(added, a) + markerAt(7) + `{"type":"ADDED","object":{"x":"`)
		}},
		{"compressed object without end", "too large: what is being loaded", fromList(bomb(`{"items":[{"x":"`))},
		{"compressed watch without end", "too large: what is being loaded", func(f *fake) { f.initial = bomb(`{"type":"ADDED","object":{"x":"`) }},
		{"same page for ever", "a list that does not end", fromList(atMost(1000, replies(200, listOf(9, "next"))))}, // so that the test ends if it is read for ever
		{"pages that repeat", "want each object once", fromList(once(replies(200, listOf(9, "x", a, b)), replies(200, listOf(9, "y", a, b))))},
		{"pages of two states", "want one state", fromList(inTurn(replies(200, listOf(9, "x", a)), replies(200, listOf(10, "", b)), replies(200, listOf(9, "x", a)), replies(200, listOf(10, "", b))))},
		{"two changes with one revision", "upstream went back in revision", watched(line(modified, widget("a", 9)), line(modified, widget("a", 9)))},
		{"delete and create with one revision", "upstream went back in revision", watched(line(deleted, widget("a", 9)), line(added, widget("a", 9)))},
		{"older change of another object", "upstream went back in revision", watched(line(modified, widget("a", 9)), line(added, widget("b", 8)))},
		{"bookmark that goes back", "upstream went back in revision", watched(bookmarkAt(20), bookmarkAt(19))},
		{"history lost as a list is read", "", fromList(once(replies(410, gone), whole))},
		{"history always lost", "too old resource version", func(f *fake) {
			f.source.paged, f.list, f.watch = true, whole, replies(410, gone)
		}},
		{"truncated list", "ends too early", fromList(replies(200, `{"kind":"WidgetList","items":[`+a))},
		{"truncated event", "the watch sends invalid JSON", func(f *fake) { f.initial = sends(line(added, a), markerAt(7), `{"type":"ADDED","obj`) }},
		{"HTML with status 200", "is not what Kubernetes answers", fromList(replies(200, "<html>welcome</html>"))},
		{"502 of a proxy", "bad gateway", fromList(replies(502, "bad gateway"))},
		{"429 with a Retry-After of nonsense", "", func(f *fake) {
			watched()(f)
			f.initial = once(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "-99999999999999999999")
				w.WriteHeader(429)
			}, f.initial)
		}},
		{"redirect to another host", "want the address of the API server itself", func(f *fake) {
			f.head = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://example.org/", http.StatusFound)
			}
		}},
		{"header without end", "PROTOCOL_ERROR", func(f *fake) {
			f.head = func(w http.ResponseWriter, _ *http.Request) {
				for i := range 1000 {
					w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1000))
				}
			}
		}},
		{"end of the connection announced (GOAWAY)", "", func(f *fake) {
			watched()(f)
			head := f.head
			f.head = func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Connection", "close"); head(w, r) }
		}},
		{"total silence", "upstream stalled", func(f *fake) { f.head = stallsWithoutAnswer }},
		{"silence within an answer", "upstream stalled", fromList(stalls(`{"kind":"WidgetList","items":[`))},
		{"a byte a second", "", fromList(slowly(listOf(9, "", `{"metadata":{"name":"a","resourceVersion":"5"}}`)))},
	}
}

func stallsWithoutAnswer(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// TestScriptedFaults: of a wrong or hostile server, a watch says what is wrong, or is
// in sync. It never takes more memory than it may.
func TestScriptedFaults(t *testing.T) {
	for _, fault := range scriptedFaults() {
		t.Run(fault.name, func(t *testing.T) {
			inBubble(t, func(f *fake) {
				fault.script(f)
				faults.Scripted{Source: "kubernetes", Fault: fault.name, Says: fault.says}.Run(f.t, f.source)
			})
		})
	}
}
