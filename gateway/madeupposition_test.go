package gateway

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

// madeUp returns positions that a client makes up of an id that it was sent: each revision near its
// own, inside of a snapshot and outside.
func madeUp(id string) (all []string) {
	part := id[:strings.LastIndex(id, "-")]
	for r := range 12 {
		all = append(all, fmt.Sprintf("%s-%d", part, r))
		for t := r + 1; t < 12; t++ {
			all = append(all, fmt.Sprintf("%s-%d/%d", part, r, t))
		}
		if strings.Contains(part, "@_") && r > 0 {
			all = append(all, fmt.Sprintf("%s-%d!1", part, r), fmt.Sprintf("%s-%d!%d", part, r, r), fmt.Sprintf("%s-%d~1", part, r))
		}
	}
	return all
}

// tellsNothing sends positions made up of an id, as a stream and as a long poll, and checks that no
// answer names a resource whose key has "secret" in it.
func (r *switching) tellsNothing(id string, who ...string) {
	r.t.Helper()
	for _, name := range who {
		for _, position := range madeUp(id) {
			x := r.get("/v1/events?watch=a&until=end_of_snapshot&last_event_id="+position, r.guard.as(name))
			poll := r.get("/v1/watches/a/changes?wait=1ms&after="+position, r.guard.as(name))
			if text := x.Text() + poll.Text(); strings.Contains(text, "secret") {
				r.t.Errorf("%s is told of a hidden key, with %s: %q", name, position, kinds(text))
			}
		}
	}
}

// A principal that has lost the right to a part comes back with positions of that part that it made up.
// What was created since is not told, nor what was there before it had the right.
func TestMadeUpPositions(t *testing.T) {
	for name, unnumbered := range map[string]bool{"deletes have revisions": false, "deletes have none": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuard(t)
				g.static("ci", "staff")
				g.static("other", "staff")
				r := &switching{newRig(t, Config{Access: g.accessBy(reads(`value.owner == "ann" && principal.name == "other"`))}, "a"), g}
				epoch := map[bool]string{false: "e1", true: "_e1"}[unnumbered]
				r.Do("a", func(sink stream.Sink) error {
					return errors.Join(sink.Reset(epoch), sink.Upsert(gatewaytest.Resource("k1", 1, `{"owner":"ann"}`)),
						sink.Upsert(gatewaytest.Resource("k2", 4, `{"owner":"bob"}`)), sink.Commit(4))
				})
				synctest.Wait()
				other := r.get("/v1/events?watch=a", g.as("other"))
				time.Sleep(slack())
				r.Commit("a", 5, gatewaytest.Resource("secret-before", 5, `{"owner":"ann"}`))
				r.Do("a", func(sink stream.Sink) error { return errors.Join(sink.Delete("secret-before", 6), sink.Commit(6)) })
				synctest.Wait()
				r.reload(reads(`value.owner == "ann"`))
				x, y := r.get("/v1/events?watch=a", g.as("ci")), r.get("/v1/events?watch=a", g.as("ci"))
				time.Sleep(slack())
				id := lastID(t, x.Take())
				x.Cancel()
				<-x.Ended
				r.Commit("a", 7, gatewaytest.Resource("k7", 7, `{"owner":"ann"}`))
				synctest.Wait()
				newer := lastID(t, y.Take()) // of another client of the same principal, which is further
				y.Cancel()
				<-y.Ended
				synctest.Wait()
				r.reload(reads(`value.owner == "bob"`))
				r.Commit("a", 9, gatewaytest.Resource("secret-after", 9, `{"owner":"ann"}`))
				synctest.Wait()
				r.tellsNothing(id, "ci", "other")
				r.tellsNothing(newer, "ci", "other")
				other.Cancel()
			})
		})
	}
}
