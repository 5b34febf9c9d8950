package gateway

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// switching is a gateway of which the member of staff "ci" follows watches, by rules that
// change.
type switching struct {
	*rig
	guard *guard
}

func newSwitching(t *testing.T, rules map[string]access.Rule, watches ...string) *switching {
	t.Helper()
	g := newGuard(t)
	g.static("ci", "staff")
	return &switching{newRig(t, Config{Access: g.operators(rules), Metrics: true}, watches...), g}
}

// operators is accessBy for staff that are operators too.
func (g *guard) operators(rules map[string]access.Rule) *Access {
	a := g.accessBy(rules)
	a.OperationsRole = "staff"
	return a
}

// reload puts other rules into effect.
func (r *switching) reload(rules map[string]access.Rule) {
	r.t.Helper()
	reloadWith(r.t, r.gateway, Config{Access: r.guard.operators(rules), Metrics: true})
	time.Sleep(slack())
	synctest.Wait()
}

// follow opens a stream, and waits for its snapshot.
func (r *switching) follow(query string, headers ...string) *gatewaytest.Exchange {
	r.t.Helper()
	x := r.get("/v1/events?"+query, append(headers, r.guard.as("ci"))...)
	time.Sleep(slack())
	if got := x.Take(); !strings.Contains(got, "end_of_snapshot") {
		r.t.Fatalf("no snapshot: %q", got)
	}
	return x
}

// prime gives a watch resources of which rules select some.
func (r *switching) prime(watch string) {
	r.Prime(watch, 4,
		gatewaytest.Resource("k1", 1, `{"owner":"ann","n":1}`), gatewaytest.Resource("k2", 2, `{"owner":"bob","n":2}`),
		gatewaytest.Resource("k3", 3, `{"owner":"eve","n":3}`), gatewaytest.Resource("k4", 4, `{"owner":"ann","n":4}`))
}

func reads(read string, fields ...string) map[string]access.Rule {
	return map[string]access.Rule{"a": {Read: read, Fields: fields}}
}

var epochs = regexp.MustCompile(`@(e1|[a-z0-9]{21})-`)

// script returns what a stream was sent, without the names of epochs.
func script(text string) string { return epochs.ReplaceAllString(text, "@EPOCH-") }

// Streams at rest are sent what a new one is, whatever becomes of what they may see.
func TestSwitchBeginsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		before, after map[string]access.Rule
		hidden        []string
	}{
		"narrower":            {reads(`value.owner in ["ann", "bob"]`), reads(`value.owner == "bob"`), []string{"k1", "k3"}},
		"wider":               {reads(`value.owner == "bob"`), reads(`value.owner in ["bob", "eve"]`), []string{"k1"}},
		"both":                {reads(`value.owner in ["ann", "bob"]`), reads(`value.owner in ["ann", "eve"]`), []string{"k2"}},
		"fields only":         {reads(`value.owner == "ann"`, "owner"), reads(`value.owner == "ann"`, "n"), []string{"owner", "k2"}},
		"nothing else":        {reads(`value.n < 3`), reads(`value.n <= 2`), []string{"k3"}},
		"from all of it":      {reads(`true`), reads(`value.n > 1`), []string{"k1"}},
		"to all of it":        {reads(`value.n > 1`), reads(`true`), nil},
		"to nothing so far":   {reads(`value.n == 1`), reads(`value.n == 5`), []string{"k1"}},
		"from nothing so far": {reads(`value.n == 5`), reads(`value.n == 1`), []string{"k2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newSwitching(t, c.before, "a")
				r.prime("a")
				streams := []*gatewaytest.Exchange{r.follow("watch=a"), r.follow("watch=a"), r.follow("watch=a")}
				r.reload(c.after)
				if n := counter(t, r.gateway, "watchtide_view_switches_total"); n != float64(len(streams)) {
					t.Errorf("%v switches are counted, want %d", n, len(streams))
				}
				fresh := r.get("/v1/events?watch=a", r.guard.as("ci"))
				time.Sleep(slack())
				_, want, _ := strings.Cut(fresh.Take(), "event: reset")
				want = "event: reset" + strings.Replace(want, "initial", "epoch_changed", 1)
				for _, x := range streams {
					got := x.Take()
					if got != want {
						t.Errorf("got %s\na new stream: %s", got, want)
					}
					for _, hidden := range c.hidden {
						if strings.Contains(got, hidden) {
							t.Errorf("%q is sent, which is hidden: %s", hidden, got)
						}
					}
				}
				r.Commit("a", 6, gatewaytest.Resource("k1", 6, `{"owner":"nobody"}`), gatewaytest.Resource("k9", 5, `{"owner":"eve","n":1}`))
				synctest.Wait()
				r.Commit("a", 7, gatewaytest.Resource("k9", 7, `{"owner":"bob","n":2}`), gatewaytest.Resource("k2", 7, `{"owner":"ann","n":1}`))
				time.Sleep(time.Minute)
				want = fresh.Take()
				for _, x := range streams {
					if got := x.Take(); got != want {
						t.Errorf("afterwards: got %s\na stream that has begun since: %s", got, want)
					}
				}
			})
		})
	}
}

// kinds returns the types and keys of the events in a stream, and where its ids are.
func kinds(text string) []string {
	var out []string
	for _, frame := range strings.Split(text, "\n\n") {
		for _, line := range strings.Split(frame, "\n") {
			data, is := strings.CutPrefix(line, "data: ")
			var e struct{ Type, Watch, Key, State, Reason string }
			if !is || json.Unmarshal([]byte(data), &e) != nil {
				continue
			}
			one := strings.Join(strings.Fields(e.Type+" "+e.Watch+" "+e.Key), " ")
			switch e.Type {
			case "status":
				one += " " + e.State
			case "reset", "goodbye":
				one += " " + e.Reason
			}
			out = append(out, one)
		}
		if _, id, has := strings.Cut(frame, "\nid: "); has {
			out = append(out, "id "+script(id))
		}
	}
	return out
}

func wantKinds(t *testing.T, x *gatewaytest.Exchange, want ...string) {
	t.Helper()
	if got := kinds(x.Take()); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Who may see nothing of a watch any more is sent a reset of it, and then the goodbye.
func TestLossTakesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := reads(`value.owner == "ann"`)
		rules["b"] = access.Rule{Read: "true"}
		r := newSwitching(t, rules, "a", "b")
		r.prime("a")
		r.prime("b")
		streams := []*gatewaytest.Exchange{r.follow("watch=a"), r.follow("watch=a"), r.follow("watch=a&filter=value.n==4", "Accept-Encoding: gzip")}
		both := r.follow("watch=b&watch=a")
		delete(rules, "a")
		rules["b"] = access.Rule{Read: "value.n > 1"}
		r.reload(rules)
		for _, x := range streams[:2] {
			wantKinds(t, x, "reset a epoch_changed", "id a@EPOCH-0/4", "goodbye revoked")
			if over, err := x.Over(); !over || err != nil {
				t.Errorf("over %t, error %v", over, err)
			}
		}
		wantKinds(t, streams[2], "reset a epoch_changed", "id a@EPOCH-0/4", "goodbye revoked")
		wantKinds(t, both, "reset a epoch_changed", "id b@EPOCH-4,a@EPOCH-0/4", "goodbye revoked")
		if x := r.get("/v1/events?watch=a", r.guard.as("ci")); x.StatusCode != 404 {
			t.Errorf("status %d of the next request, want 404", x.StatusCode)
		}
		wantNoAuthorizations(t, r.gateway)
	})
}

// Who may see a watch again, after everything of it was taken from them, is sent all of it: also
// with the id with which they were left.
func TestLossIsNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := reads(`value.owner == "ann"`)
		r := newSwitching(t, rules, "a")
		r.prime("a")
		x := r.follow("watch=a")
		r.reload(nil)
		ids := idLines.FindAllStringSubmatch(x.Take(), -1)
		r.reload(rules)
		r.Commit("a", 6, gatewaytest.Resource("k4", 6, `{"owner":"eve"}`))
		synctest.Wait()
		back := r.get("/v1/events?watch=a&last_event_id="+ids[len(ids)-1][1], r.guard.as("ci"))
		time.Sleep(slack())
		wantKinds(t, back, "hello", "delete a k4", "id a@EPOCH-0/6", "upsert a k1", "end_of_snapshot a", "id a@EPOCH-6")
	})
}

// Of several watches of a stream, one switches, or two. The ids of others have the old
// position until then.
func TestSwitchOfOneOfSeveralWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := reads(`value.owner == "ann"`)
		rules["b"] = access.Rule{Read: "true"}
		r := newSwitching(t, rules, "a", "b")
		r.prime("a")
		r.prime("b")
		x := r.follow("watch=a&watch=b")
		rules["a"] = access.Rule{Read: `value.owner == "bob"`}
		r.reload(rules)
		wantKinds(t, x, "reset a epoch_changed", "id a@EPOCH-0/4,b@EPOCH-4", "upsert a k2", "end_of_snapshot a", "id a@EPOCH-4,b@EPOCH-4")
		rules["a"], rules["b"] = access.Rule{Read: `true`}, access.Rule{Read: `value.n < 4`}
		r.reload(rules)
		got := kinds(x.Take())
		for _, want := range [][]string{
			{"reset a epoch_changed", "upsert a k1", "upsert a k2", "upsert a k3", "upsert a k4", "end_of_snapshot a"},
			{"reset b epoch_changed", "upsert b k1", "upsert b k2", "upsert b k3", "end_of_snapshot b"},
		} {
			of := slices.DeleteFunc(slices.Clone(got), func(one string) bool { return !strings.Contains(one+" ", want[0][5:8]) || strings.HasPrefix(one, "id") })
			if !slices.Equal(of, want) {
				t.Errorf("got %q, want %q", of, want)
			}
		}
		r.Commit("a", 5, gatewaytest.Resource("k4", 5, `{"n":3}`))
		r.Commit("b", 5, gatewaytest.Resource("k4", 5, `{"n":3}`))
		synctest.Wait()
		if got := x.Take(); strings.Count(got, `"key":"k4"`) != 2 {
			t.Errorf("afterwards: %q", got)
		}
	})
}

// While a watch switches to a view that is not there yet, ids of other watches have its old
// position.
func TestSwitchWhileOneIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &heldViews{Views: gatewaytest.NewViews(t)}
		g := newGuard(t)
		g.static("ci", "staff")
		rules := reads(`value.owner == "ann"`)
		rules["b"] = access.Rule{Read: "true"}
		r := &switching{newRig(t, Config{Access: g.accessBy(rules), engine: held}, "a", "b"), g}
		r.prime("a")
		r.Prime("b", 1)
		x := r.follow("watch=a&watch=b")
		held.never = true
		rules["a"] = access.Rule{Read: `value.owner == "bob"`}
		r.reload(rules)
		wantKinds(t, x, "status a priming")
		r.Commit("a", 5, gatewaytest.Resource("k1", 5, `{"owner":"ann","n":9}`), gatewaytest.Resource("k5", 5, `{"owner":"ann","n":9}`))
		r.Commit("b", 2, gatewaytest.Resource("x", 2, `1`))
		synctest.Wait()
		if got := x.Take(); !strings.Contains(got, `"key":"x"`) || strings.Contains(got, "k1") || !strings.Contains(script(got), "a@EPOCH-4,b@EPOCH-2") {
			t.Errorf("meanwhile: %q", got)
		}
		held.never = false
		rules["a"] = access.Rule{Read: `value.owner == "ann"`}
		r.reload(rules)
		wantKinds(t, x, "reset a epoch_changed", "id a@EPOCH-0/5,b@EPOCH-2", "upsert a k4", "upsert a k1", "upsert a k5", "end_of_snapshot a", "status a in_sync", "id a@EPOCH-5,b@EPOCH-2")
	})
}

// heldViews open views, or one that never has a state.
type heldViews struct {
	*gatewaytest.Views
	never bool
}

// Open implements Views.
func (v *heldViews) Open(w *watch.Watch, d *view.Definition, r views.Request) (*watch.Watch, error) {
	if v.never {
		return &w.NewRequestedView(watch.RequestedViewConfig{InUse: func(bool) {}}).Watch, nil
	}
	return v.Views.Open(w, d, r)
}

// A stream in the middle of a snapshot, and one that the client has not read, begin again in
// the new view, and are sent nothing more of the old one.
func TestSwitchOfASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSwitching(t, reads(`true`), "a")
		r.Prime("a", 300, gatewaytest.LargeOnes(300, 1)...)
		c := r.dial("GET /v1/events?watch=a&format=ndjson HTTP/1.1\r\nHost: gateway\r\n" + r.guard.as("ci") + "\r\n\r\n")
		read := func(until string) (text string) {
			for !strings.Contains(text, until) {
				line, err := c.ReadString('\n')
				if err != nil {
					t.Fatalf("%v after %.3000q", err, text)
				}
				text += line
			}
			return text
		}
		read(`"type":"upsert"`)
		time.Sleep(time.Second) // the snapshot fills the connection
		r.reload(reads(`key == "new"`))
		r.Commit("a", 301, gatewaytest.Resource("secret", 301, `"hidden"`))
		r.Commit("a", 302, gatewaytest.Resource("new", 302, `"shown"`))
		text := read(`"value":"shown"`)
		if strings.Contains(text, "secret") || strings.Contains(text, `"count":300`) || !strings.Contains(text, `"reason":"epoch_changed"`) {
			t.Errorf("got %.2000q", text)
		}
	})
}

// While no id can be sent, since the client has a part of a transaction of one watch, another one does
// not begin to switch: a client that is cut off would come back with its old position. Meanwhile the
// stream is at rest.
func TestSwitchWaitsForItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &heldViews{Views: gatewaytest.NewViews(t)}
		g := newGuard(t)
		g.static("ci", "staff")
		rules := reads(`true`)
		rules["b"] = access.Rule{Read: `value.owner == "ann"`}
		r := &switching{newRig(t, Config{Access: g.accessBy(rules), engine: held}, "a", "b"), g}
		r.prime("a")
		r.prime("b")
		c := r.dial("GET /v1/events?watch=a&watch=b HTTP/1.1\r\nHost: gateway\r\n" + g.as("ci") + "\r\n\r\n")
		read := func(until string) (text string) {
			for !strings.Contains(text, until) {
				line, err := c.ReadString('\n')
				if err != nil {
					t.Fatalf("%v after %.3000q", err, text)
				}
				text += line
			}
			return text
		}
		read(`"type":"end_of_snapshot"`) // of the one that is made first
		read(`"type":"end_of_snapshot"`)
		r.Commit("a", 5, gatewaytest.LargeOnes(300, 5)...)
		read(`"type":"upsert","watch":"a"`)
		held.never = true
		rules["a"] = access.Rule{Read: `key != "none"`}
		r.reload(rules)
		held.never = false
		rules["b"] = access.Rule{Read: `value.owner == "bob"`}
		r.reload(rules)
		if text := read(": heartbeat"); strings.Contains(text, `"watch":"b"`) || strings.Contains(text, "\nid: ") {
			t.Errorf("b begins to switch, or an id is sent: %q", kinds(text))
		}
		rules["a"] = access.Rule{Read: `key < "k050"`}
		r.reload(rules)
		_, b, begins := strings.Cut(read(`"type":"end_of_snapshot","watch":"b"`), `"type":"reset","watch":"b"`)
		if frame, _, _ := strings.Cut(b, "\n\n"); !begins || !strings.Contains(frame, "\nid: ") {
			t.Errorf("b does not begin again with an id: %q", frame)
		}
	})
}

// A stream whose new view cannot be opened ends, and its client is told why when it comes
// back.
func TestSwitchToAViewThereIsNoRoomFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := gatewaytest.NewViews(t)
		g := newGuard(t)
		g.static("ci", "staff")
		r := &switching{newRig(t, Config{Access: g.accessBy(reads("true")), engine: all}, "a"), g}
		r.prime("a")
		x := r.follow("watch=a", eventStream)
		all.Refuse(&views.Refusal{Reason: views.TooMany, Limit: 1})
		r.reload(reads("value.n == 1"))
		wantEnd(t, x, "watch_replaced")
		back := r.get("/v1/events?watch=a", g.as("ci"))
		if back.StatusCode != 503 {
			t.Errorf("status %d of the next request, want 503", back.StatusCode)
		}
		wantNoAuthorizations(t, r.gateway)
	})
}

// A renewed credential that lets its holder see something else changes what the stream shows.
func TestRenewalSwitches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		rules, err := access.CompilePolicy(access.PolicyConfig{
			Roles: []access.Role{{Name: "anyone", When: "true"}},
			Watches: []access.WatchRules{{Name: "a", Rules: []access.Rule{
				{Role: "anyone", Read: "value.owner in principal.groups", Fields: []string{"n"}},
			}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		a := g.access(nil)
		a.Policy = rules
		r := &switching{newRig(t, Config{Access: a}, "a"), g}
		r.prime("a")
		x := r.get("/v1/events?watch=a", g.asJWT("ann", 10*time.Minute, "ann", "bob"))
		time.Sleep(slack())
		id := idOf(t, x)
		x.Take()
		if renewed := r.request("PUT", "/v1/streams/"+id, g.asJWT("ann", time.Hour, "bob", "eve")); renewed.StatusCode != 204 {
			t.Fatalf("status %d", renewed.StatusCode)
		}
		time.Sleep(slack())
		wantKinds(t, x, "reset a epoch_changed", "id a@EPOCH-0/4", "upsert a k2", "upsert a k3", "end_of_snapshot a", "id a@EPOCH-4")
		time.Sleep(20 * time.Minute)
		wantOpen(t, x)
	})
}

// After a switch, the list of subscribers has the new view, and nothing is left of the old one.
func TestSwitchedStreamIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSwitching(t, reads(`value.n == 1`), "a")
		r.prime("a")
		x := r.follow("watch=a&prefix=k")
		r.reload(reads(`value.n == 2`, "n"))
		x.Take()
		listed := r.get("/v1/subscribers", r.guard.as("ci")).Text()
		for _, want := range []string{`"position":"a@`, `"prefix":"k"`, `"catching_up":false`, `"lag":0`, `"count":1`} {
			if !strings.Contains(listed, want) {
				t.Errorf("no %s is listed: %s", want, listed)
			}
		}
		time.Sleep(time.Minute)
		if s := r.gateway.views.Stats(); s.Views != 1 {
			t.Errorf("%d views are left, want 1", s.Views)
		}
	})
}

var idLines = regexp.MustCompile(`(?m)^id: (.*)$`)

// A client that comes back with a position of another view gets a reset, whoever followed that view
// before: a position is what the client says, and no evidence of what it may be told.
func TestPositionOfAnotherView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		g.static("ci", "staff")
		g.static("other", "staff")
		r := &switching{newRig(t, Config{Access: g.accessBy(reads(`value.owner == "ann"`))}, "a"), g}
		r.prime("a")
		x := r.get("/v1/events?watch=a", g.as("ci"))
		time.Sleep(slack())
		ids := idLines.FindAllStringSubmatch(x.Take(), -1)
		x.Cancel()
		<-x.Ended
		synctest.Wait()
		r.Commit("a", 6, gatewaytest.Resource("k1", 5, `{"owner":"bob","n":5}`), gatewaytest.Resource("k6", 6, `{"owner":"ann","n":6}`))
		r.Commit("a", 7, gatewaytest.Resource("k6", 7, `{"owner":"eve","n":7}`))
		r.reload(reads(`value.owner == "bob"`))
		want := []string{"hello", "reset a epoch_changed", "id a@EPOCH-0/7", "upsert a k2", "upsert a k1", "end_of_snapshot a", "id a@EPOCH-7"}
		for _, id := range ids {
			for _, who := range []string{"ci", "other"} {
				back := r.get("/v1/events?watch=a&last_event_id="+id[1], g.as(who))
				time.Sleep(slack())
				wantKinds(t, back, want...)
			}
		}
	})
}

// A client that was cut off within a switch begins again also if it comes back once it may see what it
// had before. Another client of the same principal goes on.
func TestCutOffWithinASwitchAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := reads(`value.owner == "ann"`)
		r := newSwitching(t, rules, "a")
		r.prime("a")
		x := r.get("/v1/events?watch=a", r.guard.as("ci"))
		time.Sleep(slack())
		before := lastID(t, x.Take())
		r.reload(reads(`value.owner == "bob"`))
		within, _, _ := strings.Cut(x.Take(), "event: upsert")
		x.Cancel()
		<-x.Ended
		r.reload(rules)
		back := r.get("/v1/events?watch=a&last_event_id="+lastID(t, within), r.guard.as("ci"))
		time.Sleep(slack())
		wantKinds(t, back, "hello", "reset a epoch_changed", "id a@EPOCH-0/4", "upsert a k1", "upsert a k4", "end_of_snapshot a", "id a@EPOCH-4")
		polled := r.get("/v1/watches/a/changes?wait=1ms&after="+lastID(t, within), r.guard.as("ci"))
		time.Sleep(slack())
		if text := polled.Text(); !strings.Contains(text, "epoch_changed") || !strings.Contains(text, `"k1"`) {
			t.Errorf("a long poll goes on: %s", text)
		}
		other := r.get("/v1/events?watch=a&last_event_id="+before, r.guard.as("ci"))
		time.Sleep(slack())
		wantKinds(t, other, "hello", "end_of_snapshot a", "id a@EPOCH-4")
	})
}

// After a stream of a principal has switched to another part and back, long polls of the principal wait
// as before.
func TestPollsAfterASwitchAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSwitching(t, reads(`value.owner == "ann"`), "a")
		r.prime("a")
		r.follow("watch=a")
		r.reload(reads(`value.owner == "bob"`))
		time.Sleep(time.Second)
		r.reload(reads(`value.owner == "ann"`))
		time.Sleep(time.Second)
		began := time.Now()
		position, polls, resets := "", 0, 0
		for time.Since(began) < 25*time.Second && polls < 200 {
			url := "/v1/watches/a/changes?wait=20s"
			if position != "" {
				url += "&after=" + position
			}
			text := r.get(url, r.guard.as("ci")).Text()
			c := parsePoll(t, text)
			polls++
			if strings.Contains(text, `"type":"reset"`) {
				resets++
			}
			position = c.Position
		}
		if resets > 1 || polls > 3 {
			t.Errorf("%d of %d polls within %v are answered with a reset and a snapshot; nothing has changed", resets, polls, time.Since(began))
		}
	})
}

// Streams of one view that go to different ones, while the watch changes, are each sent what
// their client may see.
func TestSwitchesOfOneGroupToSeveralViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		teams := []string{"red", "blue", "green"}
		for _, team := range teams {
			g.static(team, "staff", team)
		}
		allowing := func(read string) *Access {
			a := g.access(nil)
			rules, err := access.CompilePolicy(access.PolicyConfig{
				Roles:   []access.Role{{Name: "staff", When: `"staff" in principal.groups`}},
				Watches: []access.WatchRules{{Name: "a", Rules: []access.Rule{{Role: "staff", Read: read}}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			a.Policy = rules
			return a
		}
		r := newRig(t, Config{Access: allowing("true")}, "a")
		r.Prime("a", 3, gatewaytest.Resource("red", 1, `{"team":"red"}`), gatewaytest.Resource("blue", 2, `{"team":"blue"}`), gatewaytest.Resource("green", 3, `{"team":"green"}`))
		streams := map[string][]*gatewaytest.Exchange{}
		for range 20 {
			for _, team := range teams {
				streams[team] = append(streams[team], r.get("/v1/events?watch=a", g.as(team)))
			}
		}
		time.Sleep(time.Second)
		reloadWith(t, r.gateway, Config{Access: allowing("value.team in principal.groups")})
		for i := range uint64(5) {
			r.Commit("a", 4+i, gatewaytest.Resource(teams[i%3], 4+i, `{"team":"`+teams[i%3]+`"}`))
		}
		time.Sleep(time.Second)
		for _, team := range teams {
			for _, x := range streams[team] {
				_, after, switched := strings.Cut(x.Take(), "epoch_changed")
				if !switched || strings.Contains(after, "reset") || !strings.Contains(after, "end_of_snapshot") {
					t.Fatalf("%s: %q", team, after)
				}
				for _, other := range teams {
					if got := strings.Contains(after, `"team":"`+other+`"`); got && other != team {
						t.Errorf("%s was sent a resource of %s: %q", team, other, after)
					}
				}
			}
		}
		r.Commit("a", 9, gatewaytest.Resource("red", 9, `{"team":"red","n":9}`))
		time.Sleep(slack())
		for _, team := range teams {
			for _, x := range streams[team] {
				if got := strings.Contains(x.Take(), `"n":9`); got != (team == "red") {
					t.Errorf("%s was sent the change of red: %t", team, got)
				}
			}
		}
		time.Sleep(time.Minute)
		if s := r.gateway.views.Stats(); s.Views != 3 {
			t.Errorf("%d views, want 3", s.Views)
		}
	})
}
