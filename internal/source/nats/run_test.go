//go:build servers

package nats

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// run is one Watch call in progress.
type run struct {
	*streamtest.SinkRecorder
	t      *testing.T
	cancel context.CancelCauseFunc
	ended  chan struct{}
	err    error // read after ended
}

// start calls Watch, from nothing or from where an earlier run stopped.
func start(t *testing.T, s *Source, from *run) *run {
	var resume stream.Resume
	var state streamtest.State
	if from != nil {
		resume, state = from.Resume(), from.State()
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &run{SinkRecorder: streamtest.NewSinkRecorder(resume, state), t: t, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = s.Watch(ctx, resume, r.SinkRecorder)
		r.End()
	}()
	t.Cleanup(func() {
		r.stop()
		if err := r.Err(); err != nil {
			t.Errorf("the contract of Sink was broken: %v", err)
		}
	})
	return r
}

func (r *run) stop() *run {
	r.cancel(nil)
	<-r.ended
	return r
}

// until waits until missing returns "".
func (r *run) until(missing func() string) {
	r.t.Helper()
	timeout := time.NewTimer(30 * time.Second)
	defer timeout.Stop()
	for {
		changed := r.Changed()
		what := missing()
		if what == "" {
			return
		}
		select {
		case <-changed:
		case <-r.ended:
			if what = missing(); what != "" {
				r.t.Fatalf("ended (%v), and %s", r.err, what)
			}
			return
		case <-timeout.C:
			r.t.Fatalf("after 30 s still: %s", what)
		}
	}
}

// has waits for a state: alternating keys and values.
func (r *run) has(pairs ...string) *run {
	r.t.Helper()
	r.until(func() string { return r.lacks(pairs) })
	return r
}

// lacks returns the difference from a state.
func (r *run) lacks(pairs []string) string {
	want := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		want[pairs[i]] = pairs[i+1]
	}
	if got := values(r.State()); len(r.Commits()) == 0 || !maps.Equal(got, want) {
		return fmt.Sprintf("the state is %v, want %v", got, want)
	}
	return ""
}

// reaches reports whether a state is reached before the run or the context ends.
func (r *run) reaches(ctx context.Context, pairs ...string) bool {
	for {
		changed := r.Changed()
		if r.lacks(pairs) == "" {
			return true
		}
		select {
		case <-changed:
		case <-r.ended:
			return r.lacks(pairs) == ""
		case <-ctx.Done():
			return false
		}
	}
}

func values(s streamtest.State) map[string]string {
	out := map[string]string{}
	for key, v := range s {
		out[key] = v.Value
	}
	return out
}

// resets requires a number of snapshots.
func (r *run) resets(want int) *run {
	r.t.Helper()
	if got := r.Resets(); got != want {
		r.t.Errorf("%d snapshots, want %d", got, want)
	}
	return r
}
