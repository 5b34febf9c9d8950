package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// TestResyncsAreTold: each connection is told once, when it has caught up or has failed before.
func TestResyncsAreTold(t *testing.T) {
	var told []string
	c := Config{Hooks: Hooks{Resynced: func(r Resync) {
		one := fmt.Sprintf("%s: %d received, %d at %d, in %v", r.Reason, r.Received, r.Resources, r.Revision, r.Ended.Sub(r.Began))
		if r.Err != nil {
			one = fmt.Sprintf("%s: %v", r.Reason, errors.Is(r.Err, errBroken))
		}
		told = append(told, one)
	}}}
	slowly := func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
		time.Sleep(3 * time.Second)
		return snapshotThen("f", 4, []log.Change{upsert("a", 4), upsert("b", 3)}, stay)(ctx, resume, sink)
	}
	bubble(t, c, []stream.SourceFunc{
		fail(errBroken),
		snapshotThen("e", 3, []log.Change{upsert("a", 1)}, stayFor(time.Minute, errBroken)),
		fail(errBroken),
		slowly,
	}, func(t *testing.T, _ *Watch, _ *script) {
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if want := []string{
			"initial: true", "initial: 1 received, 1 at 3, in 0s", "resume: true", "epoch_changed: 2 received, 2 at 4, in 3s",
		}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}
