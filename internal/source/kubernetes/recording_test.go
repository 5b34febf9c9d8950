package kubernetes

import (
	"context"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// recording is a running Watch call with its recorded calls.
type recording struct {
	*streamtest.SinkRecorder
	t      testing.TB
	values *lastValues
	cancel context.CancelFunc
	ended  chan struct{} // closed when Watch has returned
	err    error         // read after ended
}

// lastValues keeps the newest value of each key in full.
type lastValues struct {
	stream.Sink
	of map[string]string // read after the call ended
}

func (l *lastValues) Upsert(r stream.Resource) error {
	l.of[r.Key] = string(r.Value)
	return l.Sink.Upsert(r)
}

// record calls Watch, from where an earlier call stopped or from nothing.
func record(t testing.TB, s *Source, from *recording) *recording {
	t.Helper()
	var resume stream.Resume
	var state streamtest.State
	if from != nil {
		resume, state = from.Resume(), from.State()
	}
	return recordAt(t, s, resume, state)
}

func recordAt(t testing.TB, s *Source, resume stream.Resume, state streamtest.State) *recording {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &recording{
		SinkRecorder: streamtest.NewSinkRecorder(resume, state),
		t:            t, cancel: cancel, ended: make(chan struct{}),
	}
	r.values = &lastValues{r.SinkRecorder, map[string]string{}}
	go func() {
		defer close(r.ended)
		r.err = s.Watch(ctx, resume, r.values)
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

func (r *recording) stop() {
	r.cancel()
	<-r.ended
}

// until waits for a condition, and fails if Watch returns before.
func (r *recording) until(what string, so func() bool) {
	r.t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for {
		changed := r.Changed()
		if so() {
			return
		}
		select {
		case <-changed:
		case <-r.ended:
			if so() {
				return
			}
			r.t.Fatalf("Watch returned (%v) before %s", r.err, what)
		case <-late.C:
			r.t.Fatalf("still no %s; there are %v", what, r.State())
		}
	}
}

// failure waits until Watch returns, and returns its error.
func (r *recording) failure() error {
	r.t.Helper()
	r.until("an error", func() bool {
		select {
		case <-r.ended:
			return true
		default:
			return false
		}
	})
	return r.err
}
