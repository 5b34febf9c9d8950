package gateway

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

// changeOne commits a change of a resource.
func (r *rig) changeOne(key string, revision uint64) {
	r.Commit("a", revision, gatewaytest.Resource(key, revision, fmt.Sprintf(`"%d"`, revision)))
	synctest.Wait()
}

// TestMaxRate: streams get the newest values at most so often, all of a rate the same, and others each
// change.
func TestMaxRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
		limited := []*gatewaytest.Exchange{}
		every := r.get("/v1/events?watch=a")
		for i := range 6 {
			limited = append(limited, r.get("/v1/events?watch=a&max_rate="+[]string{"2/s", "3/s"}[i%2]))
			synctest.Wait()
			r.changeOne("k", 10+uint64(i))
			time.Sleep(700 * time.Millisecond)
		}
		synctest.Wait()
		for _, x := range append(limited, every) {
			x.Take()
		}
		for tick := range uint64(4) {
			for i := range uint64(20) {
				r.changeOne(fmt.Sprint("k", i%3), 100+100*tick+i)
				time.Sleep(25 * time.Millisecond)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := strings.Count(every.Take(), "event: upsert"); got != 80 {
			t.Errorf("%d changes without a rate, want 80", got)
		}
		all := map[string]int{}
		for i, x := range limited {
			text := x.Take()
			if i%2 == 0 { // 3/s is one each 500 ms as well, in a group of the same interval
				all[text]++
			}
			upserts, ids := strings.Count(text, "event: upsert"), strings.Count(text, "\nid: ")
			if !strings.Contains(text, `"key":"k1","revision":"419"`) || !strings.Contains(text, `"skipped":`) || upserts > 20 || ids > 7 {
				t.Errorf("stream %d: %d upserts and %d ids:\n%s", i, upserts, ids, text)
			}
		}
		if len(all) != 1 {
			t.Errorf("streams of one rate were sent %d different texts", len(all))
		}
	})
}

// TestMaxRateAndRights: what comes of other rights waits for no tick, and nothing that waits for one is sent then.
func TestMaxRateAndRights(t *testing.T) {
	for name, after := range map[string]struct{ read, want, hidden string }{
		"narrower": {`value.owner == "bob"`, "end_of_snapshot", "k1"},
		"nothing":  {`value.owner == "nobody"`, "end_of_snapshot", "k1"},
		"no rule":  {"", "goodbye", "k1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newSwitching(t, reads(`value.owner in ["ann", "bob"]`), "a")
				r.prime("a")
				x := r.follow("watch=a&max_rate=1/m")
				r.Commit("a", 5, gatewaytest.Resource("k1", 5, `{"owner":"ann","n":5}`)) // at once
				synctest.Wait()
				if got := x.Take(); !strings.Contains(got, `"revision":"5"`) {
					t.Fatalf("the first change: %q", got)
				}
				r.Commit("a", 6, gatewaytest.Resource("k1", 6, `{"owner":"ann","n":6}`), gatewaytest.Resource("k2", 6, `{"owner":"eve","n":6}`)) // for the tick
				synctest.Wait()
				if got := x.Take(); got != "" {
					t.Fatalf("before the tick: %q", got)
				}
				r.reload(reads(after.read))
				got := x.Take()
				if !strings.Contains(got, after.want) || strings.Contains(got, after.hidden) || strings.Contains(got, `"n":6`) {
					t.Errorf("other rules: %q", got)
				}
			})
		})
	}
}

// TestMaxRateAndValues: a resource whose value leaves a rule is deleted with the tick, as all that the transaction changes.
func TestMaxRateAndValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSwitching(t, reads(`value.owner in ["ann", "bob"]`), "a")
		r.prime("a")
		x := r.follow("watch=a&max_rate=1/m")
		r.Commit("a", 5, gatewaytest.Resource("k1", 5, `{"owner":"ann","n":5}`)) // at once
		synctest.Wait()
		x.Take()
		r.Commit("a", 6, gatewaytest.Resource("k1", 6, `{"owner":"ann","n":6}`), gatewaytest.Resource("k2", 6, `{"owner":"eve","n":6}`))
		synctest.Wait()
		early := x.Take()
		time.Sleep(time.Minute + slack())
		synctest.Wait()
		got := x.Take()
		if early != "" || !strings.Contains(got, `"type":"delete","watch":"a","key":"k2","revision":"6"`) || !strings.Contains(got, `"n":6`) || strings.Contains(got, `"eve"`) {
			t.Errorf("before the tick: %q\nwith it: %q", early, got)
		}
	})
}

// TestMaxRateAndStatus: stale waits for no tick, and in_sync comes after the changes that it speaks for.
func TestMaxRateAndStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
		synctest.Wait()
		x := r.get("/v1/events?watch=a&max_rate=1/m")
		synctest.Wait()
		every := r.get("/v1/events?watch=a")
		synctest.Wait()
		r.changeOne("k", 5) // at once
		x.Take()
		r.changeOne("k", 6)
		r.Do("a", func(stream.Sink) error { return errors.New("lost") })
		every.Take()
		for range 50 { // until the watch is stale
			time.Sleep(time.Second)
			synctest.Wait()
			if strings.Contains(every.Take(), "event: status") {
				break
			}
		}
		lost := x.Take()
		if !strings.Contains(lost, "event: status") || strings.Contains(lost, "in_sync") || strings.Contains(lost, "event: upsert") {
			t.Errorf("when the upstream is lost: %q", lost)
		}
		r.changeOne("k", 7)
		text := ""
		for range 90 {
			time.Sleep(time.Second)
			synctest.Wait()
			if text += x.Take(); strings.Contains(text, "in_sync") {
				break
			}
		}
		before, _, _ := strings.Cut(text, "in_sync")
		if !strings.Contains(before, `"revision":"7"`) || strings.Count(before, "event: upsert") > 1 {
			t.Errorf("when it is back: %q", text)
		}
	})
}

// TestMaxRateIsChecked: a rate that the gateway does not have is refused with what would be right.
func TestMaxRateIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		for _, rate := range []string{"", "2", "0/s", "-1/s", "2/h", "2/s/s", "1e3/s", "99999999/s", "70000/s", "0.5/s", "0.5/m", "/s"} {
			p := refusedAs(t, r.get("/v1/events?watch=a&max_rate="+rate))
			if p.Status != 400 || p.Parameter != "max_rate" || !strings.Contains(p.Detail, "want a whole number of times, from 1 to 65535, for each second or minute, such as 2/s or 10/m; the lowest rate is 1/m") {
				t.Errorf("%q: %+v", rate, p)
			}
		}
		for _, rate := range []string{"1/m", "2/s", "7/m", "1000/s", "65535/s"} {
			if x := r.get("/v1/events?watch=a&max_rate=" + rate); x.StatusCode != 200 {
				t.Errorf("%q: %s", rate, x.Status)
			}
		}
	})
}

// TestMaxRateOverGRPC: a call has a rate as a stream over HTTP has.
func TestMaxRateOverGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
		c := dialGRPC(t, r.gateway)
		for _, bad := range []string{"2", "0/s", "1/h"} {
			call, err := c.WatchList(t.Context(), &api.WatchListRequest{Watch: "a", MaxRate: bad})
			if err == nil {
				_, err = call.Recv()
			}
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "max_rate") {
				t.Errorf("max_rate %q: %v", bad, err)
			}
		}
		call, err := c.WatchList(t.Context(), &api.WatchListRequest{Watch: "a", MaxRate: "2/s"})
		if err != nil {
			t.Fatal(err)
		}
		var got []*api.WatchListResponse
		go func() {
			for {
				m, err := call.Recv()
				if err != nil {
					return
				}
				got = append(got, m)
			}
		}()
		synctest.Wait()
		r.changeOne("k", 2)
		for i := range uint64(20) {
			r.changeOne("k", 10+i)
			time.Sleep(25 * time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		upserts, skipped, last := 0, uint64(0), uint64(0)
		for _, m := range got {
			skipped += m.GetBookmark().GetSkipped()
			if u := m.GetUpsert(); u != nil {
				upserts, last = upserts+1, u.GetResource().GetRevision()
			}
		}
		if upserts < 2 || upserts > 5 || skipped == 0 || last != 29 {
			t.Errorf("%d upserts, the last at %d, and %d skipped", upserts, last, skipped)
		}
	})
}
