package streamtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/watchtide/watchtide/stream"
)

// Step is one action of a [Scripted] source. An error ends the Watch call.
type Step func(ctx context.Context, sink stream.Sink) error

// Reset begins a snapshot.
func Reset(epoch string) Step {
	return func(_ context.Context, sink stream.Sink) error { return sink.Reset(epoch) }
}

// Upsert sends a resource; value is JSON text.
func Upsert(key string, revision uint64, value string) Step {
	return func(_ context.Context, sink stream.Sink) error {
		return sink.Upsert(stream.Resource{Key: key, Revision: revision, Value: []byte(value)})
	}
}

// Delete removes a resource; revision 0: the upstream gives it none.
func Delete(key string, revision uint64) Step {
	return func(_ context.Context, sink stream.Sink) error { return sink.Delete(key, revision) }
}

// Commit ends a transaction or a snapshot.
func Commit(revision uint64) Step {
	return func(_ context.Context, sink stream.Sink) error { return sink.Commit(revision) }
}

// Conflated declares that the next Commit may lack values; see stream.SinkExtension.
func Conflated() Step {
	return func(_ context.Context, sink stream.Sink) error { sink.Conflated(); return nil }
}

// DeletesCompleteAfter declares what the deletes of a snapshot are; see stream.SinkExtension.
func DeletesCompleteAfter(revision uint64) Step {
	return func(_ context.Context, sink stream.Sink) error { sink.DeletesCompleteAfter(revision); return nil }
}

// Status passes on the upstream's report of its own freshness.
func Status(state stream.State, reason string) Step {
	return func(_ context.Context, sink stream.Sink) error { return sink.Status(state, reason) }
}

// Await waits until something is received from c or c is closed.
func Await(c <-chan struct{}) Step {
	return func(ctx context.Context, _ stream.Sink) error {
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Hang waits for the end of the Watch call, like an upstream that has nothing to
// send.
func Hang() Step { return Await(nil) }

// Fail ends the Watch call with err.
func Fail(err error) Step {
	return func(context.Context, stream.Sink) error { return err }
}

// Scripted is a source that plays one list of steps for each Watch call. A call
// whose list is over returns nil, like an upstream that ends in an orderly way; a
// call for which there is no list hangs. Safe for concurrent use.
type Scripted struct {
	mu      sync.Mutex
	scripts [][]Step
	calls   []stream.Resume
}

// NewScripted returns a source whose n-th Watch call plays the n-th script.
func NewScripted(scripts ...[]Step) *Scripted { return &Scripted{scripts: scripts} }

// Calls returns the positions that Watch was called with so far.
func (s *Scripted) Calls() []stream.Resume {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]stream.Resume(nil), s.calls...)
}

// Watch implements [stream.Source].
func (s *Scripted) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	for i, step := range s.script(resume) {
		if err := step(ctx, sink); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func (s *Scripted) script(resume stream.Resume) []Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, resume)
	if n := len(s.calls); n <= len(s.scripts) {
		return s.scripts[n-1]
	}
	return []Step{Hang()}
}
