package stream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestCommitWaitsForItsReply: the connection ends while ingest applies a
// transaction. Its changes must stay as they are until ingest has answered, and
// the answer is what became of them.
func TestCommitWaitsForItsReply(t *testing.T) {
	for _, reply := range []error{nil, ErrOrder} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			sink := newStagingSink(ctx, cancel, newAccount(0, nil))
			result := make(chan error, 1)
			go func() {
				_ = sink.Upsert(Resource{Key: "a", Revision: 2, Value: []byte(`1`)})
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

// TestCommitEndsWithItsConnection: nobody has taken the transaction, and nobody
// will.
func TestCommitEndsWithItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		sink := newStagingSink(ctx, cancel, newAccount(0, nil))
		result := make(chan error, 1)
		go func() { result <- sink.Commit(2) }()
		synctest.Wait()
		cancel(errStopped)
		if err := <-result; !errors.Is(err, errStopped) {
			t.Errorf("Commit returned %v, want %v", err, errStopped)
		}
	})
}
