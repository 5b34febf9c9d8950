package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// moving is a gateway with a watch of ten resources, k0 to k9, whose n are 0 to 9.
type moving struct{ *viewRig }

func newMoving(t *testing.T, c Config) *moving {
	r := &moving{newViewRig(t, c)}
	r.Prime("late", 10, tenRows()...)
	return r
}

func tenRows() (out []stream.Resource) {
	for i := range 10 {
		out = append(out, gatewaytest.Resource(fmt.Sprintf("k%d", i), uint64(i+1), fmt.Sprintf(`{"n":%d}`, i)))
	}
	return out
}

// ask asks to move a window, and returns the answer.
func (r *rig) ask(id, query string, headers ...string) *gatewaytest.Exchange {
	r.t.Helper()
	return r.request(http.MethodPost, "/v1/streams/"+id+"/window?"+query, headers...)
}

// move moves a window, and waits until the stream has it. It returns what the stream was sent.
func (r *moving) move(x *gatewaytest.Exchange, id, query, want string) string {
	r.t.Helper()
	if answer := r.ask(id, query); answer.StatusCode != http.StatusOK || answer.Text() != want+"\n" {
		r.t.Fatalf("the answer to %s is %s %s, want %s", query, answer.Status, answer.Text(), want)
	}
	settle()
	return x.Take()
}

// settle waits until the streams have done what there is to do.
func settle() {
	time.Sleep(slack())
	synctest.Wait()
}

// outline returns the upserts and deletes of a stream, in short.
func outline(text string) (out []string) {
	for line := range strings.Lines(text) {
		_, data, _ := strings.Cut(line, `"type":"`)
		kind, rest, _ := strings.Cut(data, `"`)
		_, rest, _ = strings.Cut(rest, `"key":"`)
		key, rest, _ := strings.Cut(rest, `"`)
		switch {
		case kind == "upsert":
			out = append(out, "+"+key)
		case kind == "delete" && strings.Contains(rest, `"left":true`):
			out = append(out, "-"+key)
		case kind == "delete":
			out = append(out, "x"+key)
		case kind == "reset":
			out = append(out, "reset")
		}
	}
	return out
}

func wantOutline(t *testing.T, what, text string, want ...string) {
	t.Helper()
	if got := outline(text); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q:\n%s", what, got, want, text)
	}
}

// TestMoveWindow: only what is new in the window is sent, over each transport, and its position is one of the new window.
func TestMoveWindow(t *testing.T) {
	for _, transport := range []string{"sse", "ndjson", "sse over HTTP/2", "ndjson over HTTP/2"} {
		t.Run(transport, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newMoving(t, Config{})
				format, _, http2 := strings.Cut(transport, " ")
				if http2 {
					r.overHTTP2()
				}
				path := "/v1/watches/late/events" + asking("order", "n", "limit", "4", "format", format)
				x := r.get(path)
				settle()
				id := idOf(t, x)
				wantOutline(t, "the snapshot", x.Take(), "reset", "+k0", "+k1", "+k2", "+k3")
				text := r.move(x, id, "offset=2", `{"move":1}`)
				wantOutline(t, "moved", text, "-k0", "-k1", "+k4", "+k5")
				if !strings.Contains(text, `"type":"bookmark","watch":"late","revision":"10","total":10,"before":2,"move":1,"next":"`) {
					t.Errorf("the bookmark: %s", text)
				}
				wantOutline(t, "with another limit", r.move(x, id, "offset=4&limit=2", `{"move":2}`), "-k2", "-k3")
				next := nextIn(t, x.Text()+text)
				wantOutline(t, "after a cursor, with the last limit", r.move(x, id, "limit=3&after="+next, `{"move":3}`), "-k4", "-k5", "+k6", "+k7", "+k8")
				r.Commit("late", 11, gatewaytest.Resource("k7", 11, `{"n":0}`))
				settle()
				text = x.Take()
				wantOutline(t, "a change", text, "-k7", "+k9")
			})
		})
	}
}

// TestMovedWindowResumes: a client that comes back asks for the window that it has, and loses nothing.
func TestMovedWindowResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMoving(t, Config{})
		path := func(offset string) string {
			return "/v1/watches/late/events" + asking("order", "n", "limit", "2", "offset", offset)
		}
		x := r.get(path("0"))
		settle()
		id, before := idOf(t, x), lastID(t, x.Take())
		after := lastID(t, r.move(x, id, "offset=1", `{"move":1}`))
		x.Cancel()
		r.Commit("late", 11, gatewaytest.Resource("k1", 11, `{"n":1,"x":1}`))
		for _, test := range []struct {
			offset, id string
			want       []string
		}{
			{"1", after, []string{"+k1"}},
			{"1", before, []string{"reset", "+k2", "+k1"}},
			{"0", after, []string{"reset", "+k0", "+k1"}},
		} {
			y := r.get(path(test.offset), "Last-Event-ID: "+test.id)
			settle()
			if again := idOf(t, y); again == id {
				t.Errorf("another stream has the same name %s", id)
			}
			wantOutline(t, test.offset+" from "+test.id, y.Take(), test.want...)
		}
	})
}

// TestMoveOneOfSeveral: the other watches of the stream go on, and so do other streams of the same window.
func TestMoveOneOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMoving(t, Config{})
		path := "/v1/events" + asking("watch", "late", "watch", "orders", "watch", "other", "order.late", "n", "limit.late", "2", "order.orders", "-n", "limit.orders", "1")
		x, y := r.get(path), r.get(path)
		settle()
		settle()
		id, text := idOf(t, x), x.Take()
		y.Take()
		wantOutline(t, "the move", r.move(x, id, "watch=late&offset=1", `{"move":1}`), "-k0", "+k2")
		wantOutline(t, "the other stream", y.Take())
		r.Commit("other", 10, gatewaytest.Resource("new", 10, `{}`))
		settle()
		r.Commit("late", 11, gatewaytest.Resource("k0", 11, `{"n":0,"x":1}`))
		settle()
		wantOutline(t, "what comes then", x.Take(), "+new")
		wantOutline(t, "what comes then to the other one", y.Take(), "+new", "+k0")
		wantOutline(t, "the other window", r.move(x, id, "watch=orders&offset=2", `{"move":2}`), "-b/3", "+a/1")
		for _, test := range []struct{ query, detail string }{
			{"offset=1", "several windows"}, {"watch=other&offset=1", "no window of watch"}, {"watch=nosuch", "not part of this stream"},
			{"watch=late&offset=-1", "offset"}, {"watch=late&limit=0", "limit"}, {"watch=late&limit=1001", "limit"}, {"watch=late&after=x", "no cursor"},
			{"watch=late&order=n", "unknown parameter"}, {"watch=late&offset=1&offset=2", "2 times"},
		} {
			if p := refusedAs(t, r.ask(id, test.query)); p.Status != http.StatusBadRequest || !strings.Contains(p.Detail, test.detail) {
				t.Errorf("%s: %+v", test.query, p)
			}
		}
		if !strings.Contains(text, `"total":10`) {
			t.Errorf("the beginning: %s", text)
		}
	})
}

// TestMoveBesideCounts: the window of a stream moves, and counts of the same stream go on.
func TestMoveBesideCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMoving(t, Config{})
		x := r.get("/v1/events" + asking("watch", "orders", "watch", "late", "by.orders", "team", "order.late", "n", "limit.late", "2"))
		settle()
		id, text := idOf(t, x), x.Take()
		if !strings.Contains(text, `"key":"red","revision":"3","value":{"count":2}`) {
			t.Errorf("the beginning: %s", text)
		}
		wantOutline(t, "the move", r.move(x, id, "offset=1", `{"move":1}`), "-k0", "+k2")
		r.Commit("orders", 4, gatewaytest.Resource("c", 4, `{"team":"red"}`))
		settle()
		if text = x.Take(); !strings.Contains(text, `"key":"red","revision":"4","value":{"count":3}`) {
			t.Errorf("the counts after the move: %s", text)
		}
		r.Commit("late", 11, gatewaytest.Resource("k2", 11, `{"n":2,"x":1}`))
		settle()
		wantOutline(t, "the window after the move", x.Take(), "+k2")
		if p := refusedAs(t, r.ask(id, "watch=orders&offset=1")); p.Status != http.StatusBadRequest || !strings.Contains(p.Detail, "no window of watch") {
			t.Errorf("a move of the counts: %+v", p)
		}
		y := r.get("/v1/watches/orders/counts/events?by=team")
		settle()
		if text := y.Take(); strings.Contains(text, `"stream":`) {
			t.Errorf("counts alone have a name: %s", text)
		}
	})
}

// TestMoveBesideCountsAndRules: the window of such a stream moves for its principal, and the stream ends when that may
// see something else.
func TestMoveBesideCountsAndRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(read string) map[string]access.Rule {
			return map[string]access.Rule{"a": {Read: read}, "b": {Read: read}}
		}
		r := newSwitching(t, of(`true`), "a", "b")
		r.prime("a")
		r.prime("b")
		x := r.get("/v1/events"+asking("watch", "a", "order.a", "n", "limit.a", "2", "watch", "b", "by.b", "owner"), r.guard.as("ci"))
		settle()
		id := idOf(t, x)
		x.Take()
		if answer := r.ask(id, "offset=1", r.guard.as("ci")); answer.StatusCode != 200 {
			t.Fatalf("%s %s", answer.Status, answer.Text())
		}
		settle()
		wantOutline(t, "the move", x.Take(), "-k1", "+k3")
		r.reload(of(`value.owner != "bob"`))
		if text := x.Take(); !strings.Contains(text, `"reason":"watch_replaced"`) {
			t.Errorf("counts went on: %s", text)
		}
	})
}

// TestMoveInAWatchOverItsMemory: the move is refused as a stream is, and counted.
func TestMoveInAWatchOverItsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.Add(watch.Config{Name: "a", MaxBytes: 1 << 20})
		r.Prime("a", 1, gatewaytest.Resource("k", 1, `{"n":1}`))
		x := r.get("/v1/watches/a/events" + asking("order", "n", "limit", "2"))
		settle()
		id := idOf(t, x)
		r.Commit("a", 2, gatewaytest.Resource("k", 2, `"`+strings.Repeat("x", 450<<10)+`"`))
		settle()
		if p := refusedAs(t, r.ask(id, "offset=1")); p.Status != http.StatusServiceUnavailable || !strings.Contains(p.Detail, "too large for") {
			t.Errorf("%+v", p)
		}
		if n := counter(t, r.gateway, "watchtide_refusals_total", "transport", "list", "reason", "memory"); n != 1 {
			t.Errorf("%v refusals are counted", n)
		}
	})
}

// TestMoveOfAStreamThatIsNotHere: a stream that has ended, one of another replica and one that never was get the same answer.
func TestMoveOfAStreamThatIsNotHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMoving(t, Config{})
		x := r.get("/v1/watches/late/events" + asking("order", "n", "limit", "2"))
		settle()
		id := idOf(t, x)
		x.Cancel()
		settle()
		for _, id := range []string{id, "nosuch", "%20"} {
			if p := refusedAs(t, r.ask(id, "offset=1")); p.Status != http.StatusNotFound || !strings.Contains(p.Detail, "one of another replica") {
				t.Errorf("%q: %+v", id, p)
			}
		}
		for _, path := range []string{"/v1/watches/late/events", "/v1/watches/late/events" + asking("order", "n", "limit", "1", "until", "end_of_snapshot")} {
			y := r.get(path)
			settle()
			if text := y.Take(); strings.Contains(text, `"stream":`) {
				t.Errorf("%s has a name: %s", path, text)
			}
		}
	})
}

// TestMovesAreLimited: for each stream, and for all streams of a client.
func TestMovesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMoving(t, Config{})
		x := r.get("/v1/watches/late/events" + asking("order", "n", "limit", "2"))
		settle()
		id := idOf(t, x)
		x.Take()
		moved, refused := 0, 0
		for i := range 1000 {
			switch answer := r.ask(id, fmt.Sprint("offset=", i%7)); {
			case answer.StatusCode == http.StatusOK:
				moved++
			case answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") != "":
				refused++
			default:
				t.Fatalf("%s %s", answer.Status, answer.Text())
			}
		}
		if moved < 20 || moved > 40 || moved+refused != 1000 {
			t.Errorf("%d moves were made, and %d refused", moved, refused)
		}
		time.Sleep(time.Minute)
		wantOutline(t, "the last move", r.move(x, id, "offset=8", fmt.Sprintf(`{"move":%d}`, moved+1))[:0])
		if s := r.gateway.views.Stats(); s.Views > 3 {
			t.Errorf("%d views are left", s.Views)
		}
	})
}

// TestMoveOfSomebodyElse: nobody moves a stream of another principal, even with its name.
func TestMoveOfSomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSwitching(t, reads(`true`), "a")
		r.guard.static("eve", "staff")
		reloadWith(t, r.gateway, Config{Access: r.guard.operators(reads(`true`)), Metrics: true})
		r.prime("a")
		x := r.get("/v1/events"+asking("watch", "a", "order", "n", "limit", "2"), r.guard.as("ci"))
		settle()
		id := idOf(t, x)
		x.Take()
		for _, test := range []struct {
			who    []string
			status int
		}{{[]string{r.guard.as("eve")}, 404}, {nil, 404}, {[]string{r.guard.as("ci")}, 200}} {
			if answer := r.ask(id, "offset=1", test.who...); answer.StatusCode != test.status {
				t.Errorf("%q: %s, want %d", test.who, answer.Status, test.status)
			}
		}
		settle()
		wantOutline(t, "the only move", x.Take(), "-k1", "+k3")
	})
}

// TestMoveAndRules: after a move, rules that change narrow the window that the stream has then, and one that
// comes with a change of rules begins with a reset.
func TestMoveAndRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSwitching(t, reads(`true`), "a")
		r.prime("a")
		x := r.get("/v1/events"+asking("watch", "a", "order", "n", "limit", "2"), r.guard.as("ci"))
		settle()
		id := idOf(t, x)
		wantOutline(t, "the snapshot", x.Take(), "reset", "+k1", "+k2")
		move := func(query string) {
			if answer := r.ask(id, query, r.guard.as("ci")); answer.StatusCode != 200 {
				t.Fatalf("%s %s", answer.Status, answer.Text())
			}
			settle()
		}
		move("offset=1")
		wantOutline(t, "moved", x.Take(), "-k1", "+k3")
		r.reload(reads(`value.owner != "bob"`))
		text := x.Take()
		wantOutline(t, "narrower", text, "reset", "+k3", "+k4")
		if !strings.Contains(text, `"total":3,"before":1}`) || strings.Contains(text, "k2") {
			t.Errorf("narrower: %s", text)
		}
		move("offset=0")
		wantOutline(t, "moved under other rules", x.Take(), "-k4", "+k1")
		r.reload(reads(`true`, "owner"))
		wantOutline(t, "without the ordered field", x.Take(), "reset", "+k1", "+k2")
		r.reload(map[string]access.Rule{})
		settle()
		if p := refusedAs(t, r.ask(id, "offset=1", r.guard.as("ci"))); p.Status != 404 {
			t.Errorf("after the loss: %+v", p)
		}
	})
}

// TestMovesOfASlowClient: of the moves of a client that reads nothing the last one counts, and the client gets
// at most the rest of what it is being sent before it.
func TestMovesOfASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSwitching(t, reads(`true`), "a")
		r.Prime("a", 300, gatewaytest.LargeOnes(300, 1)...)
		c := r.dial("GET /v1/events" + asking("watch", "a", "format", "ndjson", "order", "n", "limit", "100") + " HTTP/1.1\r\nHost: gateway\r\n" + r.guard.as("ci") + "\r\n\r\n")
		text := ""
		read := func(until string) (part string) {
			for !strings.Contains(part, until) {
				line, err := c.ReadString('\n')
				if err != nil {
					t.Fatalf("%v after %.3000q", err, text)
				}
				part += line
			}
			text += part
			return part
		}
		hello := read(`"stream":"`)
		_, id, _ := strings.Cut(hello, `"stream":"`)
		id, _, _ = strings.Cut(id, `"`)
		read(`"type":"upsert"`)
		time.Sleep(time.Second) // the snapshot fills the connection
		for _, offset := range []string{"150", "200", "50"} {
			if answer := r.ask(id, "offset="+offset, r.guard.as("ci")); answer.StatusCode != 200 {
				t.Fatalf("%s %s", answer.Status, answer.Text())
			}
		}
		rest := read(`"move":3`)
		if n := strings.Count(text, `"type":"upsert"`); n != 150 || strings.Count(text, `"left":true`) != 50 || strings.Contains(rest, `"move":2`) {
			t.Errorf("%d upserts, %d deletes", n, strings.Count(text, `"left":true`))
		}
	})
}

// TestMovesAtTheSameTime: of moves that are asked for at the same time, the one with the highest number counts.
func TestMovesAtTheSameTime(t *testing.T) {
	for round := range 10 {
		synctest.Test(t, func(t *testing.T) {
			r := newMoving(t, Config{})
			x := r.get("/v1/watches/late/events" + asking("order", "n", "limit", "1"))
			settle()
			id := idOf(t, x)
			x.Take()
			answers := make([]*gatewaytest.Exchange, 20)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() { answers[i] = r.ask(id, fmt.Sprint("offset=", (i+round)%10)) })
			}
			all.Wait()
			settle()
			settle()
			offsets := make([]int, 21) // by the number of the move
			for i, answer := range answers {
				var got struct{ Move int }
				if err := json.Unmarshal([]byte(answer.Text()), &got); err != nil || got.Move == 0 {
					t.Fatalf("%s %s: %v", answer.Status, answer.Text(), err)
				}
				offsets[got.Move] = (i + round) % 10
			}
			rows, last := map[string]bool{"k0": true}, ""
			for line := range strings.Lines(x.Take()) {
				for _, one := range outline(line) {
					if one[0] == '+' {
						rows[one[1:]] = true
					} else {
						delete(rows, one[1:])
					}
				}
				if strings.Contains(line, `"move":`) {
					last = line
				}
			}
			if want := fmt.Sprint("k", offsets[20]); !rows[want] || len(rows) != 1 || !strings.Contains(last, `"move":20`) {
				t.Errorf("the stream has %v after %q, want %s", rows, last, want)
			}
		})
	}
}

// TestMoveWhileTheGatewayDrains: a stream that has not been told to leave yet can be moved, and leaves in its turn.
func TestMoveWhileTheGatewayDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMoving(t, Config{StreamSettings: StreamSettings{DrainDelay: 2 * time.Second, Drain: time.Minute, MaxAge: -1}})
		x := r.get("/v1/watches/late/events" + asking("order", "n", "limit", "2"))
		settle()
		id := idOf(t, x)
		x.Take()
		r.stop()
		synctest.Wait()
		text := r.move(x, id, "offset=1", `{"move":1}`)
		time.Sleep(2 * time.Minute)
		if text += x.Take(); !slices.Equal(outline(text), []string{"-k0", "+k2"}) || !strings.Contains(text, `"reason":"draining"`) {
			t.Errorf("got %s", text)
		}
	})
}

// TestMoveWithARate: a move waits for no tick, and what changes in the new window does.
func TestMoveWithARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMoving(t, Config{})
		x := r.get("/v1/watches/late/events"+asking("order", "n", "limit", "2", "max_rate", "1/m"), "Accept-Encoding: gzip")
		settle()
		id := idOf(t, x)
		x.Take()
		wantOutline(t, "the move", r.move(x, id, "offset=1", `{"move":1}`), "-k0", "+k2")
		for i := range uint64(3) {
			r.Commit("late", 11+i, gatewaytest.Resource("k2", 11+i, fmt.Sprintf(`{"n":2,"x":%d}`, i)))
			settle()
		}
		wantOutline(t, "the first change", x.Take(), "+k2")
		wantOutline(t, "another move", r.move(x, id, "offset=2", `{"move":2}`), "-k1", "+k2", "+k3")
		time.Sleep(2 * time.Minute)
		wantOutline(t, "after a tick", x.Take())
	})
}
