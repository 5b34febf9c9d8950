package watch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// TestCommitWaitsForItsReply: the connection ends while ingest applies a
// transaction. Its changes must stay as they are until ingest has replied, and the
// reply is what became of them.
func TestCommitWaitsForItsReply(t *testing.T) {
	for _, reply := range []error{nil, stream.ErrOrder} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			sink := newStagingSink(ctx, cancel, memory.NewAccount(0, nil), nil)
			result := make(chan error, 1)
			go func() {
				_ = sink.Upsert(stream.Resource{Key: "a", Revision: 2, Value: []byte(`1`)})
				result <- sink.Commit(2)
			}()
			<-sink.messages // began
			sink.replies <- nil
			applying := <-sink.messages
			cancel(errStopped)
			synctest.Wait()
			if len(result) > 0 {
				t.Fatal("Commit returned before ingest had answered")
			}
			if c := applying.changes[0]; c.Key != "a" || c.Revision != 2 || string(c.Value) != "1" {
				t.Errorf("ingest sees %+v, want what was staged", c)
			}
			sink.replies <- reply
			if err := <-result; !errors.Is(err, reply) {
				t.Errorf("Commit returned %v, want %v", err, reply)
			}
		})
	}
}

// TestCommitEndsWithItsConnection: no one has taken the transaction, and no one
// will.
func TestCommitEndsWithItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		sink := newStagingSink(ctx, cancel, memory.NewAccount(0, nil), nil)
		result := make(chan error, 1)
		go func() { result <- sink.Commit(2) }()
		synctest.Wait()
		cancel(errStopped)
		if err := <-result; !errors.Is(err, errStopped) {
			t.Errorf("Commit returned %v, want %v", err, errStopped)
		}
	})
}

// ingestTakes replies to messages as ingest does, and returns the first that ends a
// transaction.
func ingestTakes(sink *stagingSink) message {
	for {
		m := <-sink.messages
		m.changes = slices.Clone(m.changes) // the sink has them back with the reply
		sink.replies <- nil
		if m.kind == transaction {
			return m
		}
	}
}

// TestRewind: what was sent since the last mark is discarded, and no longer counted.
func TestRewind(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	memory := memory.NewAccount(0, nil)
	sink := newStagingSink(ctx, cancel, memory, nil)
	go func() {
		large := make([]byte, 10*stagingStep)
		_ = sink.Reset("e")
		_ = sink.Upsert(stream.Resource{Key: "kept", Revision: 1, Value: []byte(`1`)})
		sink.Mark()
		_ = sink.Upsert(stream.Resource{Key: "dropped", Revision: 2, Value: large})
		sink.Rewind()
		sink.Rewind()
		if n := memory.Own().Staged(); n > 3*stagingStep {
			t.Errorf("%d bytes are counted as staged, want about one step of %d", n, stagingStep)
		}
		if n := sink.received.Load(); n != 1 {
			t.Errorf("%d resources are counted as received, want 1", n)
		}
		_ = sink.Upsert(stream.Resource{Key: "more", Revision: 2, Value: []byte(`2`)})
		_ = sink.Commit(2)
		_ = sink.Upsert(stream.Resource{Key: "of the next transaction", Revision: 3, Value: []byte(`3`)})
		sink.Rewind()
		_ = sink.Commit(3)
	}()
	m := ingestTakes(sink)
	if !m.reset || len(m.changes) != 2 || m.changes[0].Key != "kept" || m.changes[1].Key != "more" {
		t.Errorf("committed %+v, want kept and more", m)
	}
	if m := ingestTakes(sink); m.reset || len(m.changes) > 0 || m.revision != 3 {
		t.Errorf("committed %+v, want nothing, at 3", m)
	}
}
