package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

const eventStream = "Accept: text/event-stream"

func TestHeadersAndHelloWaitForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a") // never primed
		began := time.Now()
		x := r.get("/v1/events?watch=a", eventStream)
		got := x.Text()
		if !strings.Contains(got, "event: hello\n") || !strings.Contains(got, `"state":"priming"`) {
			t.Errorf("got %q: want hello and the status", got)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %s", waited)
		}
		for name, want := range map[string]string{
			"Content-Type":      "text/event-stream; charset=utf-8",
			"Cache-Control":     "no-cache, no-store, no-transform",
			"X-Accel-Buffering": "no",
			"Incremental":       "?1",
			"Vary":              "Accept, Origin, Accept-Encoding",
		} {
			if got := x.Header.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	})
}

func TestNothingIsSentWithoutReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{Heartbeat: time.Minute}}, "a")
		r.Prime("a", 1)
		x := r.get("/v1/events?watch=a")
		x.Take()
		time.Sleep(time.Minute - time.Millisecond)
		if got := x.Take(); got != "" {
			t.Errorf("before the heartbeat: got %q", got)
		}
		time.Sleep(time.Millisecond + slack())
		if got := x.Take(); got != ": heartbeat\n\n" {
			t.Errorf("at the heartbeat: got %q", got)
		}
	})
}

// An event postpones the heartbeat: it is for silence.
func TestHeartbeatAfterSilenceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1)
		x := r.get("/v1/events?watch=a")
		for i := range 10 {
			time.Sleep(14 * time.Second)
			r.Commit("a", uint64(i+2), gatewaytest.Resource("k", uint64(i+2), "1"))
		}
		if got := x.Text(); strings.Contains(got, "heartbeat\n") {
			t.Errorf("got a heartbeat between events: %q", got)
		}
	})
}

// A quiet watch of a busy stream gets its bookmark, so that its position does not
// become too old.
func TestBookmarkOfAQuietWatchInABusyStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "busy", "quiet")
		r.Prime("busy", 1)
		r.Prime("quiet", 1)
		x := r.get("/v1/events?watch=busy&watch=quiet")
		x.Take()
		r.Commit("quiet", 500)
		for i := range 16 {
			time.Sleep(time.Second)
			r.Commit("busy", uint64(i+2), gatewaytest.Resource("k", uint64(i+2), "1"))
		}
		got := x.Text()
		if !strings.Contains(got, `"type":"bookmark","watch":"quiet","revision":"500"`) || !strings.HasSuffix(got, ",quiet@e1-500\n\n") {
			t.Errorf("got %q: want a bookmark of quiet, and its position in the ids after it", got)
		}
	})
}

func TestRetryIsJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{Retry: 2 * time.Second}}, "a")
		seen := map[string]bool{}
		for range 20 {
			x := r.get("/v1/events?watch=a")
			var ms int
			if _, err := fmt.Sscanf(x.Text(), "retry: %d\n\n", &ms); err != nil || ms < 1000 || ms > 3000 {
				t.Fatalf("retry %d, %v: want 1000 to 3000", ms, err)
			}
			seen[fmt.Sprint(ms)] = true
			x.Cancel()
		}
		if len(seen) < 10 {
			t.Errorf("%d different hints for 20 connections", len(seen))
		}
	})
}

func TestMaxAgeIsJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const age = 30 * time.Minute
		r := newRig(t, Config{StreamSettings: StreamSettings{MaxAge: age, Heartbeat: time.Hour}}, "a")
		r.Prime("a", 1)
		var streams []*gatewaytest.Exchange
		for range 20 {
			streams = append(streams, r.get("/v1/events?watch=a"))
		}
		time.Sleep(age - age/10 - 1)
		if n := countOver(streams); n != 0 {
			t.Errorf("%d streams ended before 90 %% of the maximum age", n)
		}
		time.Sleep(age / 10)
		if n := countOver(streams); n == 0 || n == len(streams) {
			t.Errorf("%d of %d streams ended by the maximum age: want some", n, len(streams))
		}
		time.Sleep(age/10 + 1)
		if n := countOver(streams); n != len(streams) {
			t.Errorf("%d of %d streams ended by 110 %% of the maximum age", n, len(streams))
		}
		if got := streams[0].Text(); !strings.Contains(got, `"reason":"max_age"`) {
			t.Errorf("got %q: want goodbye", got)
		}
	})
}

func countOver(streams []*gatewaytest.Exchange) (n int) {
	for _, x := range streams {
		if over, _ := x.Over(); over {
			n++
		}
	}
	return n
}

func TestNoMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{MaxAge: -1, Heartbeat: time.Hour}}, "a")
		r.Prime("a", 1)
		x := r.get("/v1/events?watch=a")
		time.Sleep(24 * time.Hour)
		if over, _ := x.Over(); over {
			t.Error("the stream ended")
		}
	})
}

// A client that does not read is gone after the write deadline. Until then, and
// after, no other client notices.
func TestClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{WriteTimeout: 10 * time.Second}}, "a")
		r.Prime("a", 1)
		stalled := r.dial(rawGet("/v1/events?watch=a"))
		readUntil(t, stalled, "end_of_snapshot")
		other := r.get("/v1/events?watch=a")
		other.Take()
		big := `"` + strings.Repeat("x", 1<<20) + `"`
		r.Commit("a", 2, gatewaytest.Resource("big", 2, big))
		if got := other.Take(); !strings.Contains(got, big) {
			t.Errorf("the other client got %d bytes", len(got))
		}
		time.Sleep(10*time.Second - 1)
		w, _ := r.Registry.Watch("a")
		if n := w.Subscribers(); n != 2 {
			t.Errorf("%d subscribers before the deadline, want 2", n)
		}
		time.Sleep(10 * time.Second / netconn.ChecksPerTimeout)
		synctest.Wait()
		if n := w.Subscribers(); n != 1 {
			t.Errorf("%d subscribers after the deadline, want 1", n)
		}
		if n := r.gateway.metrics.Transport[frame.SSE.String()]; testutil.ToFloat64(n.WriteTimeouts) != 1 || testutil.ToFloat64(n.Subscribers) != 1 {
			t.Error("the metrics do not count it")
		}
		r.Commit("a", 3, gatewaytest.Resource("small", 3, "1"))
		if got := other.Take(); !strings.Contains(got, `"small"`) {
			t.Errorf("the other client got %q", got)
		}
	})
}

// readUntil reads lines up to the one that contains what.
func readUntil(t *testing.T, r *rawConn, what string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("before %q: %v", what, err)
		}
		if strings.Contains(line, what) {
			return
		}
	}
}

// A client that reads slowly, but does read, gets everything.
func TestClientThatReadsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{WriteTimeout: 10 * time.Second, MaxAge: -1}}, "a")
		r.Prime("a", 1, gatewaytest.Resource("big", 1, `"`+strings.Repeat("x", 200<<10)+`"`))
		slow := r.dial(rawGet("/v1/events?watch=a&until=end_of_snapshot"))
		got, p := 0, make([]byte, 512)
		began := time.Now()
		for {
			time.Sleep(9 * time.Second)
			n, err := slow.Conn.Read(p)
			got += n
			if err != nil || strings.Contains(string(p[:n]), "\r\n0\r\n\r\n") {
				break
			}
		}
		if took := time.Since(began); got < 200<<10 || took < time.Hour {
			t.Errorf("got %d bytes in %s: want all, after an hour", got, took)
		}
	})
}

// A slow client costs no memory in proportion to its lag: it gets the newest value,
// and the number of changes that it missed.
func TestSlowClientSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{WriteTimeout: time.Minute}}, "a")
		r.Prime("a", 1)
		slow := r.dial(rawGet("/v1/events?watch=a&format=ndjson"))
		readUntil(t, slow, "position")
		value := func(i int) string { return fmt.Sprintf(`{"n":%d,"x":"%s"}`, i, strings.Repeat("x", 1000)) }
		const last = 3000
		for i := 2; i <= last; i++ {
			r.Commit("a", uint64(i), gatewaytest.Resource("k", uint64(i), value(i)))
		}
		newest, lines, skipped := "", 0, 0
		for lines+skipped < last-1 {
			line, err := slow.ReadString('\n')
			if err != nil {
				t.Fatalf("%v: after %d of %d values, %d skipped, newest %.20s", err, lines, last-1, skipped, newest)
			}
			var e struct {
				Type    string
				Value   json.RawMessage
				Skipped int
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				continue // the framing of HTTP/1.1
			}
			skipped += e.Skipped
			if e.Type == "upsert" {
				newest, lines = string(e.Value), lines+1
			}
		}
		if lines > last/2 || newest != value(last) {
			t.Errorf("got %d of %d values, and %d were skipped; at last %.20s", lines, last-1, skipped, newest)
		}
		synctest.Wait()
		// It is counted when it happens, not when the stream ends.
		if n := testutil.ToFloat64(r.gateway.metrics.Transport[frame.NDJSON.String()].Conflated); n != float64(skipped) {
			t.Errorf("%v changes are counted as conflated, the client received %d", n, skipped)
		}
	})
}

// A client that hangs up is noticed at once, whatever the stream does.
func TestClientThatHangsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1)
		x := r.get("/v1/events?watch=a")
		x.Take()
		x.Cancel()
		synctest.Wait()
		if w, _ := r.Registry.Watch("a"); w.Subscribers() != 0 || r.gateway.admission.Count() != 0 {
			t.Errorf("%d subscribers, %d streams", w.Subscribers(), r.gateway.admission.Count())
		}
	})
}

// With more than a few watches the pump waits in another way.
func TestStreamOfManyWatches(t *testing.T) {
	for _, n := range []int{4, 5, 12} { // see session.waiter
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testManyWatches(t, n) })
		})
	}
}

func testManyWatches(t *testing.T, n int) {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("w%02d", i))
	}
	r := newRig(t, Config{}, names...)
	for _, name := range names {
		r.Prime(name, 1)
	}
	query := "/v1/events?watch=" + strings.Join(names, "&watch=")
	x := r.get(query, "Last-Event-ID: "+names[0]+"@e1-1")
	x.Take()
	for _, name := range names {
		r.Commit(name, 2, gatewaytest.Resource("k", 2, "1"))
		if got := x.Take(); strings.Count(got, "event: ") != 1 || !strings.Contains(got, `"watch":"`+name+`"`) {
			t.Errorf("after a change of %s: got %q", name, got)
		}
	}
	time.Sleep(15*time.Second + slack())
	if got := x.Take(); got != ": heartbeat\n\n" {
		t.Errorf("after silence: got %q", got)
	}
	r.Registry.Remove(names[n-1])
	if got := x.Take(); !strings.Contains(got, `"reason":"watch_removed"`) {
		t.Errorf("after a watch was removed: got %q", got)
	}
	again := r.get(query)
	if again.StatusCode != http.StatusNotFound {
		t.Errorf("coming back: %s, want 404", again.Status)
	}
}

func TestHangUpOnManyWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a", "b", "c", "d", "e")
		x := r.get("/v1/events?watch=a&watch=b&watch=c&watch=d&watch=e")
		x.Take()
		x.Cancel()
		synctest.Wait()
		if n := r.gateway.admission.Count(); n != 0 {
			t.Errorf("%d streams are open", n)
		}
	})
}

func TestUntilOnAWatchThatIsNotPrimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{PrimeWait: 5 * time.Second}}, "a")
		began := time.Now()
		x := r.get("/v1/events?watch=a&until=end_of_snapshot", eventStream)
		if x.StatusCode != http.StatusServiceUnavailable || x.Header.Get("Retry-After") == "" {
			t.Errorf("got %s, Retry-After %q", x.Status, x.Header.Get("Retry-After"))
		}
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("waited %s", waited)
		}
		go func() {
			time.Sleep(3 * time.Second)
			r.Prime("a", 1)
		}()
		if x := r.get("/v1/events?watch=a&until=end_of_snapshot"); x.StatusCode != http.StatusOK || !strings.Contains(x.Text(), `"complete"`) {
			t.Errorf("primed meanwhile: got %s %q", x.Status, x.Text())
		}
	})
}

// The first subscriber starts an on-demand watch.
func TestOnDemandWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.Add(watch.Config{Name: "a", OnDemand: true, Linger: time.Second})
		synctest.Wait()
		x := r.get("/v1/events?watch=a")
		r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
		if got := x.Text(); !strings.Contains(got, `"end_of_snapshot"`) {
			t.Errorf("got %q", got)
		}
	})
}

// An interrupted snapshot continues where it stopped: there is an id at least every
// 64 KiB, and none that is too long.
func TestIdsInALongSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		var all []stream.Resource
		for i := range 3000 {
			all = append(all, gatewaytest.Resource(fmt.Sprintf("key-%04d", i), uint64(i+1), `"`+strings.Repeat("x", 300)+`"`))
		}
		r.Prime("a", 3000, all...)
		body := bufio.NewScanner(strings.NewReader(r.get("/v1/events?watch=a&until=end_of_snapshot").Text()))
		since, ids := 0, 0
		for body.Scan() {
			since += len(body.Text()) + 1
			if id, ok := strings.CutPrefix(body.Text(), "id: "); ok {
				if since > 66<<10 {
					t.Errorf("%d bytes before id %s", since, id)
				}
				if _, err := stream.ParsePositions(id); err != nil {
					t.Error(err)
				}
				since, ids = 0, ids+1
			}
		}
		if ids < 10 {
			t.Errorf("%d ids in a snapshot of a megabyte", ids)
		}
	})
}

func TestStreamMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 5, gatewaytest.Resource("k", 1, "1"))
		x := r.get("/v1/events?watch=a&until=end_of_snapshot")
		body := x.Text()
		r.get("/v1/events?watch=a&until=end_of_snapshot", "Last-Event-ID: a@e1-5").Text()
		live := r.get("/v1/events?watch=a&format=ndjson")
		live.Take()
		time.Sleep(5 * time.Second)
		r.Commit("a", 6, gatewaytest.Resource("k", 6, "2"))
		live.Take()
		m := r.gateway.metrics
		sse, ndjson := m.Transport[frame.SSE.String()], m.Transport[frame.NDJSON.String()]
		for what, got := range map[string]float64{
			"upserts by SSE":     testutil.ToFloat64(sse.Events[stream.Upsert]) - 1,
			"hellos by SSE":      testutil.ToFloat64(sse.Events[stream.Hello]) - 2,
			"goodbyes by SSE":    testutil.ToFloat64(sse.Events[stream.Goodbye]) - 2,
			"complete by SSE":    testutil.ToFloat64(sse.Goodbyes[stream.GoodbyeComplete]) - 2,
			"complete by NDJSON": testutil.ToFloat64(ndjson.Goodbyes[stream.GoodbyeComplete]),
			"snapshots by SSE":   testutil.ToFloat64(sse.Snapshots) - 1,
			"streams by SSE":     testutil.ToFloat64(sse.Subscribers),
			"streams by NDJSON":  testutil.ToFloat64(ndjson.Subscribers) - 1,
			"upserts by NDJSON":  testutil.ToFloat64(ndjson.Events[stream.Upsert]) - 2,
			"resumes: exact":     testutil.ToFloat64(m.Resumes.WithLabelValues(frame.SSE.String(), "exact")) - 1,
			"resumes: snapshot":  testutil.ToFloat64(m.Resumes.WithLabelValues(frame.SSE.String(), "snapshot")) - 1,
			"end_of_snapshots":   counter(t, r.gateway, "watchtide_end_of_snapshot_seconds") - 3,
			"commits to write":   counter(t, r.gateway, "watchtide_commit_to_write_seconds") - 1,
			// No time passes while the gateway works.
			"seconds to snapshot": sum(t, r.gateway, "watchtide_end_of_snapshot_seconds"),
			"seconds to write":    sum(t, r.gateway, "watchtide_commit_to_write_seconds"),
			"bytes by SSE, least": min(0, testutil.ToFloat64(sse.Bytes)-float64(len(body))),
		} {
			if got != 0 {
				t.Errorf("%s: off by %v", what, got)
			}
		}
	})
}

// With until, a watch that is complete waits silently for the others.
func TestUntilWithAWatchThatTakesLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{AheadWait: 3 * time.Second}}, "a", "b")
		r.Prime("a", 1)
		r.Prime("b", 1)
		x := r.get("/v1/events?watch=a&watch=b&until=end_of_snapshot", "Last-Event-ID: b@e1-99")
		x.Take()
		r.Commit("a", 2, gatewaytest.Resource("k", 2, "1"))
		if got := x.Take(); got != "" {
			t.Errorf("after a was complete: got %q", got)
		}
		time.Sleep(3*time.Second + slack())
		if got := x.Take(); !strings.Contains(got, `"reason":"ahead"`) || !strings.Contains(got, `"complete"`) {
			t.Errorf("once b gave up waiting: got %q", got)
		}
	})
}
