package files

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// patience is only used up by a test that fails.
const patience = 20 * time.Second

// follower is a running Watch call.
type follower struct {
	*streamtest.SinkRecorder
	t      *testing.T
	cancel context.CancelFunc
	ended  chan struct{} // closed when Watch has returned
	err    error         // read after ended
}

// follow calls Watch with nothing to resume from.
func follow(t *testing.T, s stream.Source) *follower {
	t.Helper()
	return followFrom(t, s, streamtest.NewSinkRecorder(stream.Resume{}, nil), stream.Resume{})
}

// resume calls Watch where another follower ended.
func resume(t *testing.T, s stream.Source, from *follower) *follower {
	t.Helper()
	return followFrom(t, s, streamtest.NewSinkRecorder(from.Resume(), from.State()), from.Resume())
}

func followFrom(t *testing.T, s stream.Source, sink *streamtest.SinkRecorder, resume stream.Resume) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &follower{SinkRecorder: sink, t: t, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		f.err = s.Watch(ctx, resume, sink)
		sink.End()
	}()
	t.Cleanup(func() {
		f.stop()
		if err := sink.Err(); err != nil {
			t.Errorf("the contract of Sink was broken: %v", err)
		}
	})
	return f
}

func (f *follower) stop() {
	f.cancel()
	<-f.ended
}

// await waits until missing returns "".
func (f *follower) await(missing func() string) {
	f.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		changed := f.Changed()
		what := missing()
		if what == "" {
			return
		}
		select {
		case <-changed:
		case <-f.ended:
			if what = missing(); what == "" {
				return
			}
			f.t.Fatalf("Watch returned (%v) before: %s", f.err, what)
		case <-timeout.C:
			f.t.Fatalf("after %v still: %s", patience, what)
		}
	}
}

// awaitState waits for the values, by key.
func (f *follower) awaitState(want map[string]string) {
	f.t.Helper()
	f.await(func() string {
		if len(f.Commits()) == 0 {
			return "no Commit"
		}
		if got := f.values(); !maps.Equal(got, want) {
			return fmt.Sprintf("state is %v, want %v", got, want)
		}
		return ""
	})
}

func (f *follower) values() map[string]string {
	out := map[string]string{}
	for key, v := range f.State() {
		out[key] = v.Value
	}
	return out
}

// awaitWrong waits until the newest status is Stale and contains all the parts.
func (f *follower) awaitWrong(parts ...string) {
	f.t.Helper()
	f.await(func() string {
		all := f.Statuses()
		if len(all) == 0 {
			return fmt.Sprintf("no status, want %q", parts)
		}
		last := all[len(all)-1]
		for _, part := range parts {
			if last.State != stream.Stale || !strings.Contains(last.Reason, part) {
				return fmt.Sprintf("status is %v: %s, want stale with %q", last.State, last.Reason, part)
			}
		}
		return ""
	})
}

// awaitWell waits until the newest status is InSync.
func (f *follower) awaitWell() {
	f.t.Helper()
	f.await(func() string {
		all := f.Statuses()
		if len(all) == 0 || all[len(all)-1].State == stream.InSync {
			return ""
		}
		return "status is stale: " + all[len(all)-1].Reason
	})
}

// neverWrong fails if there ever was a status.
func (f *follower) neverWrong() {
	f.t.Helper()
	if all := f.Statuses(); len(all) > 0 {
		f.t.Errorf("status %v, want none", all)
	}
}
