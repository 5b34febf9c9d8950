package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// watchOnce calls Watch from nothing and returns its error, and how long it took.
func watchOnce(t *testing.T, s *Source) (sink *calls, took time.Duration, err error) {
	t.Helper()
	sink = &calls{}
	began := time.Now()
	err = s.Watch(t.Context(), stream.Resume{}, sink)
	return sink, time.Since(began), err
}

func TestSilenceIsAStall(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		turn   turn
		want   time.Duration
	}{
		"two and a half heartbeats":  {Config{}, stalls(primed()), 37500 * time.Millisecond},
		"as configured":              {Config{StallAfter: 3 * time.Second}, stalls(primed()), 3 * time.Second},
		"in the middle of an event":  {Config{}, stalls(primed(), "event: ups"), 37500 * time.Millisecond},
		"before hello":               {Config{}, stalls("retry: 1\n\n"), 30 * time.Second},
		"no answer":                  {Config{}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 30 * time.Second},
		"no answer, as configured":   {Config{StallAfter: time.Second}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, time.Second},
		"a heartbeat, then no other": {Config{}, beats(3), 3*15*time.Second + 37500*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, u, stop := serve(t, c.config, c.turn)
				defer stop()
				_, took, err := watchOnce(t, sourceOf(t, u, "w"))
				if !errors.Is(err, stream.ErrStalled) || took != c.want {
					t.Errorf("error %v after %v, want ErrStalled after %v", err, took, c.want)
				}
			})
		})
	}
}

// beats is primed, followed by a number of heartbeats.
func beats(n int) turn {
	return func(w http.ResponseWriter, r *http.Request) {
		write(w, primed())
		for range n {
			time.Sleep(15 * time.Second)
			write(w, beat)
		}
		<-r.Context().Done()
	}
}

// A slow sink is not a slow upstream.
func TestSlowSinkIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, u, stop := serve(t, Config{}, replies(primed(), upsert("x", 3, "1", "w@e-3"), goodbye("draining", 0)))
		defer stop()
		sink := &calls{on: func(string) error { time.Sleep(time.Hour); return nil }}
		if err := sourceOf(t, u, "w").Watch(t.Context(), stream.Resume{}, sink); err != nil {
			t.Error(err)
		}
	})
}

// The wait that an upstream requests before the next request.
func TestRequestedWait(t *testing.T) {
	refused := refuses(503, "not now", "Retry-After", "7")
	for name, c := range map[string]struct {
		turn turn
		want time.Duration
		says string // to subscribers
	}{
		"draining":             {replies(primed(), goodbye("draining", 4210)), 4210 * time.Millisecond, ""},
		"draining, long":       {replies(primed(), goodbye("draining", 60_000)), time.Minute, "status stale it wants to be left alone until 2000-01-01T00:01:00Z"},
		"for ever":             {replies(primed(), goodbye("draining", 1<<40)), maxRetryWait, "status stale it wants to be left alone until 2000-01-01T00:05:00Z"},
		"max_age":              {replies(primed(), goodbye("max_age", 4210)), 0, ""},
		"overloaded":           {replies("retry: 1\n\n", goodbye("overloaded", 3000)), 3 * time.Second, ""},
		"unavailable":          {refused, 7 * time.Second, "status stale it wants to be left alone until 2000-01-01T00:00:07Z"},
		"too many requests":    {refuses(429, "slow down", "Retry-After", "Sat, 01 Jan 2000 00:00:04 GMT"), 4 * time.Second, ""},
		"unavailable, no time": {refuses(503, "not now"), 0, ""},
		"cut":                  {breaks(primed()), 0, ""}, // retry says 2 s, for those that are not back immediately
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, u, stop := serve(t, Config{}, c.turn, replies(primed(), goodbye("draining", 0)))
				defer stop()
				s := sourceOf(t, u, "w")
				_, _, _ = watchOnce(t, s)
				sink, took, err := watchOnce(t, s)
				if err != nil || took != c.want {
					t.Errorf("called again after %v (%v), want %v", took, err, c.want)
				}
				want := strings.TrimSuffix(primedCalls, "\n")
				if c.says != "" {
					want = c.says + "\n" + want + "\nstatus in_sync "
				}
				if sink.String() != want {
					t.Errorf("calls\n%s\nwant\n%s", sink, want)
				}
			})
		})
	}
}

// The field retry is observed between failing attempts.
func TestRetryAppliesFromTheSecondAttemptOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		_, u, stop := serve(t, Config{}, breaks(primed()), broken, broken, replies(primed(), goodbye("draining", 0)))
		defer stop()
		s := sourceOf(t, u, "w")
		for i, want := range []time.Duration{0, 0, 2 * time.Second, 2 * time.Second} {
			if _, took, _ := watchOnce(t, s); took != want {
				t.Errorf("attempt %d took %v, want %v", i+1, took, want)
			}
		}
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	for name, turns := range map[string][]turn{
		"reading":     {stalls(primed())},
		"waiting":     {replies(primed(), goodbye("draining", 200_000))},
		"no answer":   {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"in snapshot": {stalls(hello, reset("w@e-0/2"))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, u, stop := serve(t, Config{}, turns...)
				defer stop()
				s := sourceOf(t, u, "w")
				if name == "waiting" {
					_, _, _ = watchOnce(t, s)
				}
				over := errors.New("over")
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, over)
				defer cancel()
				began := time.Now()
				if err := s.Watch(ctx, stream.Resume{}, &calls{}); !errors.Is(err, over) || time.Since(began) != 10*time.Second {
					t.Errorf("got %v after %v", err, time.Since(began))
				}
			})
		})
	}
}

// A failing sink ends its watch, with its error, and no other.
func TestFailingSinkEndsItsWatchAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := hello + snapshotOf("a") + snapshotOf("b")
		f, u, stop := serve(t, Config{}, stalls(both), stalls(hello, eventOf("b", "upsert", `,"key":"late","revision":"3","value":1`, "b@e-3"),
			eventOf("b", "end_of_snapshot", `,"revision":"3","count":2,"resumed":true`, "b@e-3")))
		defer stop()
		broken := errors.New("broken")
		a := &calls{on: func(call string) error {
			if call == "commit 2" {
				return broken
			}
			return nil
		}}
		b := &calls{}
		sa, sb := sourceOf(t, u, "a"), sourceOf(t, u, "b")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- sb.Watch(ctx, stream.Resume{}, b) }()
		if err := sa.Watch(t.Context(), stream.Resume{}, a); !errors.Is(err, broken) {
			t.Errorf("error %v, want the sink's", err)
		}
		time.Sleep(5 * time.Second)
		if want := "reset e\nupsert \"k\" 2 1\ncommit 2\nupsert \"late\" 3 1\ncommit 3\nstatus in_sync "; b.String() != want {
			t.Errorf("the other one:\n%s\nwant\n%s", b, want)
		}
		if ids := f.ids(); len(ids) != 2 || ids[1] != "b@e-2" {
			t.Errorf("positions %q, want a second request for b alone, from b@e-2", ids)
		}
		cancel()
		<-ended
	})
}

// snapshotOf is a snapshot of one resource at revision 2.
func snapshotOf(watch string) string {
	return eventOf(watch, "reset", `,"reason":"initial"`, watch+"@e-0/2") +
		eventOf(watch, "upsert", `,"key":"k","revision":"2","value":1`, "") +
		eventOf(watch, "end_of_snapshot", `,"revision":"2","count":1`, watch+"@e-2")
}
