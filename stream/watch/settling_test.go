package watch

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// flapping reports one freshness after the other, every millisecond, until a time is over, and
// then the last one.
func flapping(d time.Duration, last stream.State) stream.SourceFunc {
	return func(ctx context.Context, r stream.Resume, sink stream.Sink) error {
		for i := range int(d / time.Millisecond) {
			state := []stream.State{stream.Stale, stream.InSync, stream.Resyncing}[i%3]
			if err := sink.Status(state, strings.Repeat("x", i%7)); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
		if err := sink.Status(last, "the last"); err != nil {
			return err
		}
		return stay(ctx, r, sink)
	}
}

// TestFlappingFreshnessSettles: an upstream that changes its freshness all the time floods neither
// the log nor subscribers, and what it says in the end is passed on within a heartbeat.
func TestFlappingFreshnessSettles(t *testing.T) {
	for _, last := range []stream.State{stream.InSync, stream.Stale} {
		t.Run(last.String(), func(t *testing.T) {
			var logged bytes.Buffer
			c := Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))}
			bubble(t, c, []stream.SourceFunc{snapshotThen("e", 1, nil, flapping(time.Minute, last))}, func(t *testing.T, w *Watch, _ *script) {
				r := follow(w)
				defer r.s.Close()
				told := 0
				for range 600 { // a subscriber that reads often
					time.Sleep(100 * time.Millisecond)
					told += len(r.next())
				}
				time.Sleep(settleMost)
				told += len(r.next())
				if s := w.Status(); s.State != last {
					t.Errorf("after a heartbeat the watch is %v (%s), want %v", s.State, s.Full(), last)
				}
				if lines := strings.Count(logged.String(), "\n"); lines > 25 || told > 30 {
					t.Errorf("%d lines were logged, a subscriber was told of %d changes", lines, told)
				}
			})
		})
	}
}

// TestFirstFreshnessIsNotPostponed: an upstream that is stale now and then is passed on at once.
func TestFirstFreshnessIsNotPostponed(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 1, nil, func(ctx context.Context, r stream.Resume, sink stream.Sink) error {
			for range 5 {
				for _, state := range []stream.State{stream.Stale, stream.InSync} {
					time.Sleep(time.Minute)
					if err := sink.Status(state, ""); err != nil {
						return err
					}
				}
			}
			return stay(ctx, r, sink)
		}),
	}, func(t *testing.T, w *Watch, _ *script) {
		r := follow(w)
		defer r.s.Close()
		r.next()
		time.Sleep(time.Millisecond)
		for range 5 {
			for _, state := range []string{"stale", "in_sync"} {
				time.Sleep(time.Minute)
				expect(t, "at once", r.next(), "status "+state)
			}
		}
	})
}

// TestLostUpstreamIsNotFresh: what an upstream said before it was lost is not published afterwards.
func TestLostUpstreamIsNotFresh(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 1, nil, func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
			for i := range 1000 { // it ends stale as seen, and in sync as said
				if err := sink.Status([]stream.State{stream.Stale, stream.InSync}[i%2], ""); err != nil {
					return err
				}
			}
			return errBroken
		}),
		fail(errBroken), fail(errBroken), fail(errBroken), fail(errBroken), fail(errBroken), fail(errBroken),
	}, func(t *testing.T, w *Watch, _ *script) {
		for range 100 {
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			if s := w.Status(); time.Since(s.Since) > 0 && s.State == stream.InSync {
				t.Fatalf("%v after the upstream was lost: %+v", 20*time.Millisecond, s)
			}
		}
	})
}
