package watch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// telling is a source that knows more of its upstream than most.
type telling struct{ stream.SourceFunc }

func (telling) RetainedBytes() (int64, bool) { return 7, true }
func (telling) EstimatedResources() int64    { return 10 }

// TestSourcesThatTell: a watch shows how far a snapshot is of how much, and what the upstream keeps for it.
func TestSourcesThatTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := NewRegistry()
		defer registry.Close()
		loads := func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
			_ = sink.Reset("e")
			_ = sink.Upsert(upsert("a", 1).Resource)
			time.Sleep(time.Minute)
			_ = sink.Commit(1)
			<-ctx.Done()
			return ctx.Err()
		}
		w, err := registry.Add(Config{Name: "w", Source: telling{loads}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if got, want := w.Status().Full(), "loading, 1 resource so far, of about 10"; got != want {
			t.Errorf("the status is %q, want %q", got, want)
		}
		if received, expected, ok := w.Loading(); received != 1 || expected != 10 || !ok {
			t.Errorf("loading %d of %d, %v", received, expected, ok)
		}
		if bytes, ok := w.RetainedBytes(); bytes != 7 || !ok {
			t.Errorf("the upstream keeps %d bytes, %v", bytes, ok)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, _, ok := w.Loading(); ok {
			t.Error("loading, although the watch has caught up")
		}
	})
}
