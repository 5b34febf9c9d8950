package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// retaining is a source whose upstream keeps something for it.
type retaining struct{ bytes int64 }

func (r retaining) RetainedBytes() (int64, bool) { return r.bytes, r.bytes > 0 }

func (r retaining) Watch(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	if err := errors.Join(sink.Reset("e"), sink.Commit(1)); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestRetainedBytes: operators see what an upstream keeps for a watch, where that is known.
func TestRetainedBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true})
		for name, source := range map[string]retaining{"kept": {7}, "unknown": {}} {
			if _, err := r.Registry.Add(watch.Config{Name: name, Source: source}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for name, want := range map[string]float64{"kept": 7, "unknown": -1} {
			if got := counter(t, r.gateway, "watchtide_upstream_retained_bytes", "watch", name); got != want {
				t.Errorf("the metric of %s is %v, want %v", name, got, want)
			}
			of := r.subscribers("?watch=" + name).Upstreams
			if len(of) != 1 || (of[0].Retained != nil) != (want > 0) || want > 0 && float64(*of[0].Retained) != want {
				t.Errorf("the upstream of %s is %+v", name, of)
			}
		}
	})
}
