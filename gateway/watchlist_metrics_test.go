package gateway

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
)

// TestWatchListMetrics checks the metrics of gRPC streams.
func TestWatchListMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{}, "services")
		r.Prime("services", 7, gatewaytest.Resource("a", 5, "1"), gatewaytest.Resource("b", 7, "2"))
		r.watchList(&api.WatchListRequest{Watch: "services", UntilEndOfSnapshot: true}).take()
		live := r.watchList(&api.WatchListRequest{Watch: "services", Position: "services@e1-7"})
		live.take()
		time.Sleep(5 * time.Second)
		r.Commit("services", 8, gatewaytest.Resource("a", 8, "3"))
		live.take()
		for _, want := range []struct {
			name   string
			value  float64
			labels []string
		}{
			{"watchtide_subscribers", 1, nil},
			{"watchtide_events_sent_total", 1, []string{"type", "reset"}},
			{"watchtide_events_sent_total", 3, []string{"type", "upsert"}},
			{"watchtide_events_sent_total", 2, []string{"type", "end_of_snapshot"}},
			{"watchtide_events_sent_total", 1, []string{"type", "goodbye"}},
			{"watchtide_goodbyes_total", 1, []string{"reason", "complete"}},
			{"watchtide_snapshots_sent_total", 1, nil},
			{"watchtide_resumes_total", 1, []string{"outcome", "snapshot"}},
			{"watchtide_resumes_total", 1, []string{"outcome", "exact"}},
			{"watchtide_conflated_changes_total", 0, nil},
		} {
			labels := append([]string{"transport", "grpc"}, want.labels...)
			if got := counter(t, r.gateway, want.name, labels...); got != want.value {
				t.Errorf("%s%v is %v, want %v", want.name, labels, got, want.value)
			}
		}
		if got := counter(t, r.gateway, "watchtide_sent_bytes_total", "transport", "grpc"); got < 100 {
			t.Errorf("%v bytes counted", got)
		}
		if got := counter(t, r.gateway, "watchtide_commit_to_write_seconds"); got != 1 {
			t.Errorf("%v latencies counted", got)
		}
		for _, name := range []string{"watchtide_commit_to_write_seconds", "watchtide_end_of_snapshot_seconds"} {
			if got := sum(t, r.gateway, name); got != 0 { // no time passes while the gateway works
				t.Errorf("%s: %v seconds in all", name, got)
			}
		}
	})
}

// TestWatchListSkips checks that a gRPC client that falls behind gets the newest
// values and the number that it missed, and is counted once.
func TestWatchListSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{StreamSettings: StreamSettings{WriteTimeout: time.Hour}}, "services")
		r.Prime("services", 1)
		slow, err := r.client.WatchList(t.Context(), &api.WatchListRequest{Watch: "services"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		const last = 3000
		for i := uint64(2); i <= last; i++ {
			r.Commit("services", i, gatewaytest.Resource("k", i, fmt.Sprintf(`{"n":%d,"x":"%s"}`, i, strings.Repeat("x", 1000))))
		}
		values, skipped := uint64(0), uint64(0)
		for values+skipped < last-1 {
			m, err := slow.Recv()
			if err != nil {
				t.Fatal(err)
			}
			skipped += m.GetBookmark().GetSkipped()
			if m.GetUpsert() != nil {
				values++
			}
		}
		r.Commit("services", last+1, gatewaytest.Resource("k", last+1, "1"))
		for m := new(api.WatchListResponse); m.GetUpsert().GetResource().GetRevision() != last+1; {
			if m, err = slow.Recv(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := counter(t, r.gateway, "watchtide_conflated_changes_total", "transport", "grpc"); skipped == 0 || got != float64(skipped) {
			t.Errorf("%v changes are counted as conflated, the client received %d", got, skipped)
		}
	})
}
