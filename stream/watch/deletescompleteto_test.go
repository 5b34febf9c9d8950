package watch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// TestSourceSaysHowFarDeletesAreComplete: DeletesCompleteTo counts from the next commit
// on, and the next connection is told.
func TestSourceSaysHowFarDeletesAreComplete(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		func(_ context.Context, _ stream.Resume, sink stream.Sink) error {
			sink.DeletesCompleteTo(9)
			return errors.Join(sink.Reset("_e"), sink.Upsert(upsert("a", 9).Resource), sink.Commit(12))
		},
		func(ctx context.Context, r stream.Resume, sink stream.Sink) error {
			sink.DeletesCompleteTo(10)
			return errors.Join(sink.Commit(13), stay(ctx, r, sink))
		},
	}, func(t *testing.T, w *Watch, s *script) {
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := (stream.Resume{Epoch: "_e", Revision: 12, DeletesBehind: 3}); s.resumes[1] != want {
			t.Errorf("resumed at %+v, want %+v", s.resumes[1], want)
		}
		at := w.Snapshot().Position()
		at.Run = 0 // as another replica would issue it
		if got := at.String(); got != "w@_e-13!3" {
			t.Errorf("at %s, want w@_e-13!3", got)
		}
	})
}
