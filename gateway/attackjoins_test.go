package gateway

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

// TestAttackJoins checks that streams with prefixes that match nothing scan every
// resource in turns with the others, and that all of them finish.
func TestAttackJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		var many []stream.Resource
		for i := range 20000 {
			many = append(many, gatewaytest.Resource(fmt.Sprintf("k%05d", i), uint64(i+1), "1"))
		}
		r.Prime("a", 20000, many...)
		live := r.get("/v1/watches/a/events?prefix=k00000")
		live.Take()
		var joined []*gatewaytest.Exchange
		for i := range 20 {
			joined = append(joined, r.get(fmt.Sprintf("/v1/watches/a/events?prefix=none%d", i)))
		}
		// The changes that such a reader missed end with a count.
		first := joined[0].Text()
		id := strings.TrimSpace(first[strings.LastIndex(first, "id: ")+len("id: "):])
		again := r.get("/v1/watches/a/events?prefix=none0", "Last-Event-ID: "+id)
		r.Commit("a", 20001, gatewaytest.Resource("k00000", 20001, "2"))
		if got := live.Take(); strings.Count(got, "event: upsert") != 1 {
			t.Errorf("the stream that wants the change got %s", got)
		}
		for i, x := range joined {
			if got := x.Text(); !strings.Contains(got, `"revision":"20000","count":0}`) || strings.Contains(got, "event: upsert") {
				t.Errorf("stream %d, which wants nothing, got %s", i, got)
			}
		}
		if got := again.Text(); !strings.Contains(got, `"count":0,"resumed":true}`) {
			t.Errorf("the resumed stream got %s", got)
		}
	})
}
