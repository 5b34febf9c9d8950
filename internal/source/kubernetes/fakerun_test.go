package kubernetes

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// run is one Watch call.
type run struct {
	*streamtest.SinkRecorder
	f      *fake
	cancel context.CancelFunc
	ended  chan struct{} // closed when Watch has returned
	err    error         // read after ended
}

// start calls Watch, from where an earlier call stopped, or from nothing.
func (f *fake) start(from *run) *run {
	var resume stream.Resume
	var state streamtest.State
	if from != nil {
		resume, state = from.Resume(), from.State()
	}
	return f.startAt(resume, state)
}

func (f *fake) startAt(resume stream.Resume, state streamtest.State) *run {
	return f.startInto(resume, state, func(r stream.Sink) stream.Sink { return r })
}

// startInto is startAt with something between the source and the recorder.
func (f *fake) startInto(resume stream.Resume, state streamtest.State, between func(stream.Sink) stream.Sink) *run {
	ctx, cancel := context.WithCancel(f.t.Context())
	r := &run{SinkRecorder: streamtest.NewSinkRecorder(resume, state), f: f, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = f.source.Watch(ctx, resume, between(r.SinkRecorder))
		r.End()
	}()
	f.t.Cleanup(func() {
		if err := r.Err(); err != nil {
			f.t.Errorf("the contract of Sink was broken: %v", err)
		}
	})
	return r
}

// stop ends the call by its context.
func (r *run) stop() {
	r.cancel()
	<-r.ended
}

// end waits for Watch to return.
func (r *run) end() error {
	<-r.ended
	return r.err
}

// running fails if Watch has returned.
func (r *run) running() {
	r.f.t.Helper()
	synctest.Wait()
	select {
	case <-r.ended:
		r.f.t.Fatalf("Watch returned: %v", r.err)
	default:
	}
}

// after waits, in the bubble's time.
func (r *run) after(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// wantState fails unless exactly these keys exist, at a revision.
func (r *run) wantState(revision uint64, keys ...string) {
	r.f.t.Helper()
	synctest.Wait()
	state := r.State()
	for _, key := range keys {
		if _, ok := state[key]; !ok {
			r.f.t.Errorf("%s is missing", key)
		}
	}
	if len(state) != len(keys) || r.Resume().Revision != revision {
		r.f.t.Errorf("there are %v at %d, want %v at %d", state, r.Resume().Revision, keys, revision)
	}
}

// wantResets fails unless Reset was called n times.
func (r *run) wantResets(n int) {
	r.f.t.Helper()
	if got := r.Resets(); got != n {
		r.f.t.Errorf("Reset was called %d times, want %d", got, n)
	}
}
