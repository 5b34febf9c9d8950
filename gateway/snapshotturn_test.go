package gateway

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
)

// newLargeRig returns a gateway that sends one snapshot at a time of a large watch.
func newLargeRig(t *testing.T, c Config) *rig {
	c.SnapshotBudget = 1
	r := newRig(t, c, "a")
	r.Prime("a", 1, gatewaytest.LargeOnes(100, 1)...)
	return r
}

// stall opens a stream whose client does not read beyond the start of the snapshot.
func stall(r *rig, path string) *rawConn {
	r.t.Helper()
	c := r.dial(rawGet(path))
	for {
		line, err := c.ReadString('\n')
		if err != nil {
			r.t.Fatal(err)
		}
		if line == "event: reset\n" {
			synctest.Wait()
			return c
		}
	}
}

const waits = `"state":"priming"`

func wantWaiting(t *testing.T, x *gatewaytest.Exchange) {
	t.Helper()
	got := x.Text()
	if strings.Count(got, waits) != 1 || strings.Contains(got, "event: reset") {
		t.Fatalf("got %.400q: want hello and one status", got)
	}
}

func wantSnapshot(t *testing.T, x *gatewaytest.Exchange) {
	t.Helper()
	got := x.Text()
	if strings.Count(got, "event: upsert") != 100 || !strings.Contains(got, `"count":100`) {
		t.Fatalf("got %.400q: want the snapshot", got)
	}
}

// TestSnapshotsWaitForTheirTurn checks that waiting streams get a status and
// heartbeats, and are in sync at the end, and that a client that stalls does not
// hold up those after it.
func TestSnapshotsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLargeRig(t, Config{StreamSettings: StreamSettings{Heartbeat: 500 * time.Millisecond, WriteTimeout: time.Minute}})
		stalled := stall(r, "/v1/events?watch=a")
		x := r.get("/v1/events?watch=a")
		synctest.Wait() // y comes after it, also where another shard carries it
		y := r.get("/v1/events?watch=a&until=end_of_snapshot")
		wantWaiting(t, x)
		wantWaiting(t, y)
		if got := y.Text(); !strings.Contains(got, "about 1 are before it") {
			t.Errorf("got %q: want how many are before it", got)
		}
		time.Sleep(900 * time.Millisecond)
		if got := x.Text(); strings.Count(got, ": heartbeat\n") != 1 {
			t.Errorf("got %q: want a heartbeat", got)
		}
		time.Sleep(3 * time.Second)
		wantSnapshot(t, x)
		wantSnapshot(t, y)
		if got := x.Text(); !strings.Contains(got, `"state":"in_sync"`) {
			t.Errorf("got %q: want in_sync after the wait", got[len(got)-300:])
		}
		if over, err := y.Over(); !over || err != nil {
			t.Errorf("until: over %v, error %v", over, err)
		}
		// The one that stalled continues where it was.
		go func() {
			time.Sleep(time.Second)
			stalled.Close()
		}()
		all, _ := io.ReadAll(stalled)
		if got := string(all); strings.Count(got, "event: upsert") != 100 || strings.Contains(got, "event: reset") {
			t.Errorf("got %d bytes: want one whole snapshot", len(got))
		}
		wantNoneWaiting(t, r)
	})
}

func wantNoneWaiting(t *testing.T, r *rig) {
	t.Helper()
	synctest.Wait()
	b := r.gateway.snapshots
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if b.Waiting() != 0 || b.Used != 0 {
		t.Errorf("%d wait, and %d bytes are taken", b.Waiting(), b.Used)
	}
}

// TestResumesPassFirst checks that streams that need only the changes do not wait
// for those that need everything, although they came later, and that small snapshots
// do not wait at all.
func TestResumesPassFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLargeRig(t, Config{})
		r.Commit("a", 2, gatewaytest.LargeOnes(50, 2)...)
		stalled := stall(r, "/v1/events?watch=a")
		x := r.get("/v1/events?watch=a")
		resumes, small := r.get("/v1/events?watch=a&last_event_id=a@e1-1"), r.get("/v1/events?watch=a&last_event_id=a@e1-2")
		wantWaiting(t, x)
		if got := resumes.Text(); !strings.Contains(got, `"state":"resyncing"`) || !strings.Contains(got, "about 0 are before it") {
			t.Errorf("with a position: got %q", got)
		}
		if got := small.Text(); !strings.Contains(got, `"resumed":true`) {
			t.Errorf("with nothing to send: got %q", got)
		}
		stalled.Close()
		wantSnapshot(t, x)
		if got := resumes.Text(); strings.Count(got, "event: upsert") != 50 || !strings.Contains(got, `"resumed":true`) || !strings.Contains(got, `"state":"in_sync"`) {
			t.Errorf("with a position: got %d bytes: want the changes alone", len(got))
		}
		wantNoneWaiting(t, r)
	})
}

// TestLeavingTheQueue checks that a stream that ends while it waits, for any
// reason, passes its turn to the next.
func TestLeavingTheQueue(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		leave  func(r *rig, x *gatewaytest.Exchange)
		want   string
	}{
		"client":  {leave: func(_ *rig, x *gatewaytest.Exchange) { x.Cancel() }},
		"max age": {config: Config{StreamSettings: StreamSettings{MaxAge: 2 * time.Second}}, leave: func(*rig, *gatewaytest.Exchange) { time.Sleep(3 * time.Second) }, want: `"reason":"max_age"`},
		"drain":   {config: Config{StreamSettings: StreamSettings{Drain: -1}}, leave: func(r *rig, _ *gatewaytest.Exchange) { go r.gateway.Drain(); synctest.Wait() }, want: `"reason":"draining"`},
		"removed": {leave: func(r *rig, _ *gatewaytest.Exchange) { r.Registry.Remove("a") }, want: `"reason":"watch_removed"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLargeRig(t, c.config)
				stalled := stall(r, "/v1/events?watch=a")
				x := r.get("/v1/events?watch=a")
				wantWaiting(t, x)
				c.leave(r, x)
				synctest.Wait()
				if c.want != "" && !strings.Contains(x.Text(), c.want) {
					t.Errorf("got %q: want %s", x.Text(), c.want)
				}
				r.gateway.snapshots.Mu.Lock()
				if n := r.gateway.snapshots.Waiting(); n != 0 {
					t.Errorf("%d wait", n)
				}
				r.gateway.snapshots.Mu.Unlock()
				stalled.Close()
				wantNoneWaiting(t, r)
			})
		})
	}
}
