package sourcetest

import (
	"context"
	"errors"
	"github.com/watchtide/watchtide/internal/streamtest"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// fixture is one test of the conformance suite under way. want is the upstream's
// state, without revisions, which the upstream chooses.
type fixture struct {
	*Harness
	t    *testing.T
	want map[string]string
}

func (f *fixture) put(i, n int) {
	f.t.Helper()
	key := f.key(i)
	value := f.value(key, n)
	if err := f.Put(key, value); err != nil {
		f.t.Fatalf("Put(%q): %v", key, err)
	}
	f.note(key, value)
}

func (f *fixture) delete(i int) {
	f.t.Helper()
	key := f.key(i)
	if err := f.Delete(key); err != nil {
		f.t.Fatalf("Delete(%q): %v", key, err)
	}
	delete(f.want, key)
}

func (f *fixture) note(key, value string) {
	if f.want == nil {
		f.want = map[string]string{}
	}
	f.want[key] = value
}

// run is one Watch call under way.
type run struct {
	*streamtest.SinkRecorder
	t      *testing.T
	cancel context.CancelFunc
	ended  chan struct{} // closed when Watch has returned
	err    error         // what Watch returned; read after ended
}

// start calls Watch, from nothing or from where an earlier run stopped.
func (f *fixture) start(from *run) *run {
	if from == nil {
		return f.startAt(stream.Resume{}, nil)
	}
	return f.startAt(from.Resume(), from.State())
}

func (f *fixture) startAt(resume stream.Resume, state streamtest.State) *run {
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{
		SinkRecorder: streamtest.NewSinkRecorder(resume, state),
		t:            f.t, cancel: cancel, ended: make(chan struct{}),
	}
	go func() {
		defer close(r.ended)
		r.err = f.Source.Watch(ctx, resume, r.SinkRecorder)
		r.End()
	}()
	f.t.Cleanup(func() {
		cancel()
		r.wait()
		if err := r.Err(); err != nil {
			f.t.Errorf("the contract of Sink was broken: %v", err)
		}
	})
	return r
}

// stop cancels the Watch call and waits for it.
func (r *run) stop() {
	r.t.Helper()
	r.cancel()
	r.wait()
}

// wait waits for Watch to return.
func (r *run) wait() {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(Timeout):
		r.t.Fatalf("Watch did not return within %v", Timeout)
	}
}

// await waits until missing returns "". It fails with the missing part if Watch
// returns or the time is over first.
func (f *fixture) await(r *run, missing func() string) {
	f.t.Helper()
	timeout := time.NewTimer(Timeout)
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
			if what = missing(); what == "" {
				return
			}
			f.t.Fatalf("Watch returned (error: %v) before: %s", r.err, what)
		case <-timeout.C:
			f.t.Fatalf("after %v still: %s", Timeout, what)
		}
	}
}

// awaitState waits until the committed state is the upstream's.
func (f *fixture) awaitState(r *run) {
	f.t.Helper()
	f.await(r, func() string {
		if len(r.Commits()) == 0 {
			return "no Commit"
		}
		return valuesOf(r.State()).Diff(f.state())
	})
}

// state is want as a State without revisions.
func (f *fixture) state() streamtest.State {
	out := streamtest.State{}
	for key, value := range f.want {
		out[key] = streamtest.Version{Value: streamtest.ValueText(value)}
	}
	return out
}

// valuesOf returns the state without revisions.
func valuesOf(s streamtest.State) streamtest.State {
	out := make(streamtest.State, len(s))
	for key, v := range s {
		out[key] = streamtest.Version{Value: v.Value}
	}
	return out
}

// mustEnd waits for Watch to return with a matching error: any if want is nil, else
// one that is want.
func (r *run) mustEnd(want error) {
	r.t.Helper()
	r.wait()
	if want != nil && !errors.Is(r.err, want) {
		r.t.Errorf("Watch returned %v, want an error that wraps %q", r.err, want)
	}
}
