package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

// changes is the answer of a long poll.
type changes struct {
	Position string
	Events   []json.RawMessage
}

func parsePoll(t *testing.T, text string) changes {
	t.Helper()
	var c changes
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return c
}

func wantPoll(t *testing.T, x *gatewaytest.Exchange, want string) {
	t.Helper()
	if over, err := x.Over(); !over || err != nil || x.StatusCode != 200 {
		t.Errorf("answer %d, over %t, %v", x.StatusCode, over, err)
	}
	if got := x.Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

const pollPath = "/v1/watches/services/changes"

func TestChangesSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7, gatewaytest.Resource("a", 5, `{"n": 1}`), gatewaytest.Resource("b", 6, `2`))
		synctest.Wait()
		wantPoll(t, r.get(pollPath), `{"events":[{"type":"reset","watch":"services","reason":"initial"},`+
			`{"type":"upsert","watch":"services","key":"a","revision":"5","value":{"n": 1}},`+
			`{"type":"upsert","watch":"services","key":"b","revision":"6","value":2},`+
			`{"type":"end_of_snapshot","watch":"services","revision":"7","count":2}],"position":"services@e1-7"}`+"\n")
	})
}

func TestChangesAfterPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7, gatewaytest.Resource("a", 5, `1`))
		r.Commit("services", 8, gatewaytest.Resource("b", 8, `2`))
		synctest.Wait()
		wantPoll(t, r.get(pollPath+"?after=services@e1-7"), `{"events":[`+
			`{"type":"upsert","watch":"services","key":"b","revision":"8","value":2},`+
			`{"type":"end_of_snapshot","watch":"services","revision":"8","count":2,"resumed":true}],"position":"services@e1-8"}`+"\n")
	})
}

// TestChangesWaits checks that a poll without news is answered as soon as a change
// arrives.
func TestChangesWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		poll := make(chan *gatewaytest.Exchange)
		go func() { poll <- r.get(pollPath + "?after=services@e1-7&wait=20s") }()
		time.Sleep(19 * time.Second)
		synctest.Wait()
		select {
		case <-poll:
			t.Fatal("answered before there was a change")
		default:
		}
		r.Commit("services", 9, gatewaytest.Resource("a", 9, `1`))
		began := time.Now()
		wantPoll(t, <-poll, `{"events":[{"type":"end_of_snapshot","watch":"services","revision":"7","count":0,"resumed":true},`+
			`{"type":"upsert","watch":"services","key":"a","revision":"9","value":1}],"position":"services@e1-9"}`+"\n")
		if took := time.Since(began); took != 0 {
			t.Errorf("the answer came %s after the change", took)
		}
	})
}

func TestChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		for query, wait := range map[string]time.Duration{
			"&wait=0s": 0, "&wait=0": 0, "&wait=1500ms": 1500 * time.Millisecond, "": 30 * time.Second, "&wait=5m": 5 * time.Minute,
		} {
			began := time.Now()
			wantPoll(t, r.get(pollPath+"?after=services@e1-7"+query), `{"events":[],"position":"services@e1-7"}`+"\n")
			if took := time.Since(began); took != wait {
				t.Errorf("%q: answered after %s, want %s", query, took, wait)
			}
		}
	})
}

// TestChangesProgress checks a poll with no event but a newer position.
func TestChangesProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7)
		r.Commit("services", 100)
		synctest.Wait()
		wantPoll(t, r.get(pollPath+"?after=services@e1-7&wait=1s"), `{"events":[],"position":"services@e1-100"}`+"\n")
	})
}

func TestChangesReset(t *testing.T) {
	for after, reason := range map[string]string{
		"services@e0-7": "epoch_changed",
		"services@e1-1": "expired",
		"services@e1-9": "ahead",
		"nonsense":      "invalid_position",
		"nodes@e1-7":    "invalid_position",
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{}, "services")
				r.Prime("services", 7)
				synctest.Wait()
				got := parsePoll(t, r.get(pollPath+"?wait=0s&after="+after).Text())
				if got.Position != "services@e1-7" {
					t.Errorf("position %s", got.Position)
				}
				for _, e := range got.Events {
					if strings.Contains(string(e), `"type":"reset"`) {
						if !strings.Contains(string(e), `"reason":"`+reason+`"`) {
							t.Errorf("%s, want %s", e, reason)
						}
						return
					}
				}
				t.Errorf("no reset in %s", got.Events)
			})
		})
	}
}

// TestChangesAheadArrives checks that a position from another replica is held until
// this one has reached it.
func TestChangesAheadArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		time.AfterFunc(2*time.Second, func() { r.Commit("services", 9) })
		began := time.Now()
		got := parsePoll(t, r.get(pollPath+"?wait=0s&after=services@e1-9").Text())
		if took := time.Since(began); took != 2*time.Second || got.Position != "services@e1-9" {
			t.Errorf("after %s: %+v", took, got)
		}
		for _, e := range got.Events {
			if strings.Contains(string(e), `"reset"`) {
				t.Errorf("got %s", e)
			}
		}
	})
}

// TestChangesOfStaleWatch checks that a stale watch is reported, but only once for
// each wait.
func TestChangesOfStaleWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7)
		r.status("services", stream.Stale, "upstream said so")
		synctest.Wait()
		began := time.Now()
		got := parsePoll(t, r.get(pollPath+"?wait=10s&after=services@e1-7").Text())
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("answered after %s", took)
		}
		if len(got.Events) == 0 || !strings.Contains(string(got.Events[0]), `"state":"stale"`) {
			t.Errorf("got %s", got.Events)
		}
	})
}

// TestChangesReportsStatus checks that a watch that becomes stale during a wait is a
// reason to answer.
func TestChangesReportsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		time.AfterFunc(3*time.Second, func() { r.status("services", stream.Stale, "gone") })
		began := time.Now()
		got := parsePoll(t, r.get(pollPath+"?wait=10s&after=services@e1-7").Text())
		if took := time.Since(began); took != 3*time.Second || len(got.Events) != 2 {
			t.Errorf("after %s: %s", took, got.Events)
		}
	})
}

// status makes the source report its freshness.
func (r *rig) status(watch string, state stream.State, reason string) {
	r.Do(watch, func(sink stream.Sink) error { return sink.Status(state, reason) })
}

func TestChangesWhenDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		time.AfterFunc(time.Second, r.stop)
		began := time.Now()
		wantPoll(t, r.get(pollPath+"?after=services@e1-7"), `{"events":[],"position":"services@e1-7"}`+"\n")
		if took := time.Since(began); took != time.Second {
			t.Errorf("answered after %s", took)
		}
	})
}

func TestChangesOfRemovedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		time.AfterFunc(time.Second, func() { r.Registry.Remove("services") })
		wantPoll(t, r.get(pollPath+"?after=services@e1-7"), `{"events":[],"position":"services@e1-7"}`+"\n")
		if x := r.get(pollPath); x.StatusCode != 404 {
			t.Errorf("the next poll is answered with %d", x.StatusCode)
		}
	})
}

func TestChangesOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{MaxSubscribers: 1}}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		first := make(chan *gatewaytest.Exchange)
		go func() { first <- r.get(pollPath + "?after=services@e1-7&wait=5s") }()
		synctest.Wait()
		if x := r.get(pollPath); x.StatusCode != 503 || x.Header.Get("Retry-After") == "" {
			t.Errorf("the second poll: %d %v", x.StatusCode, x.Header)
		}
		if n := counter(t, r.gateway, "watchtide_goodbyes_total", "transport", "poll", "reason", "overloaded"); n != 1 {
			t.Errorf("%v refusals are counted", n)
		}
		<-first
		synctest.Wait() // until its handler has returned too
		if x := r.get(pollPath); x.StatusCode != 200 {
			t.Errorf("after the first has ended: %d", x.StatusCode)
		}
	})
}

func TestChangesBadParameters(t *testing.T) {
	r := newAPIRig(t, Config{})
	const path = "/v1/watches/notes/changes"
	for _, wait := range []string{"x", "-1s", "301s", "30", "1e9s", ""} {
		r.get(path+"?wait="+wait).wantProblem(t, 400, "wait", "want a duration from 0s to 5m0s")
	}
	r.get(path+"?after="+strings.Repeat("a", stream.MaxPositionLength+1)).wantProblem(t, 414, "after", "at most 1024")
	r.get(path+"?filter=x").wantProblem(t, 400, "filter", `there is no variable "x"`)
}

// TestChangesOfLargeSnapshot checks that more than one flush is still one JSON
// object.
func TestChangesOfLargeSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		var all []stream.Resource
		for i := range uint64(5000) {
			all = append(all, gatewaytest.Resource(string(rune('a'+i%26))+strings.Repeat("x", int(i/26)), i+2, `"`+strings.Repeat("v", 100)+`"`))
		}
		r.Prime("services", 6000, all...)
		synctest.Wait()
		x := r.get(pollPath)
		<-x.Ended
		got := parsePoll(t, x.Text())
		if len(got.Events) != 5002 || got.Position != "services@e1-6000" {
			t.Errorf("%d events, position %s", len(got.Events), got.Position)
		}
	})
}

// TestChangesPrefix checks that changes outside the prefix are no reason to answer.
func TestChangesPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Prime("services", 7, gatewaytest.Resource("a/1", 5, `1`), gatewaytest.Resource("b/1", 6, `1`))
		synctest.Wait()
		first := parsePoll(t, r.get(pollPath+"?prefix=a/").Text())
		if len(first.Events) != 3 {
			t.Errorf("snapshot: %s", first.Events)
		}
		time.AfterFunc(time.Second, func() { r.Commit("services", 8, gatewaytest.Resource("b/1", 8, `2`)) })
		time.AfterFunc(2*time.Second, func() { r.Commit("services", 9, gatewaytest.Resource("a/1", 9, `2`)) })
		began := time.Now()
		got := r.get(pollPath + "?prefix=a/&after=" + first.Position)
		if took := time.Since(began); took != 2*time.Second || strings.Contains(got.Text(), "b/1") {
			t.Errorf("after %s: %s", took, got.Text())
		}
	})
}
