package views

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// TestDeclaredDeleteOfUnseen checks that a reader which comes from another replica keeps no resource
// of the view that was deleted before this replica had seen it; and that other deletes of
// what the view does not have cost readers nothing.
func TestDeclaredDeleteOfUnseen(t *testing.T) {
	gone := []streamtest.Step{streamtest.Delete("a/k", 8), streamtest.Commit(8)}
	for name, c := range map[string]struct {
		begin, then []streamtest.Step
		resumes     bool
	}{
		"never seen":            {[]streamtest.Step{streamtest.Reset("e"), streamtest.Commit(3)}, gone, false},
		"deleted before":        {[]streamtest.Step{streamtest.Reset("e"), streamtest.Upsert("a/k", 2, `{"n":1}`), streamtest.Commit(3)}, slices.Concat([]streamtest.Step{streamtest.Delete("a/k", 4), streamtest.Commit(4)}, gone), false},
		"seen, not in the view": {[]streamtest.Step{streamtest.Reset("e"), streamtest.Upsert("a/k", 2, `{"n":2}`), streamtest.Commit(3)}, gone, true},
		"never in the view":     {[]streamtest.Step{streamtest.Reset("e"), streamtest.Commit(3)}, []streamtest.Step{streamtest.Delete("b/k", 8), streamtest.Commit(8)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				next := make(chan struct{})
				r := newRig(t, slices.Concat(c.begin, []streamtest.Step{streamtest.Await(next)}, c.then, []streamtest.Step{streamtest.Hang()})...)
				v := r.view(view.Params{Prefix: "a/", Filter: "value.n == 1"})
				synctest.Wait()
				elsewhere := v.Snapshot().Position().At(7) // another replica had a/k there
				next <- struct{}{}
				synctest.Wait()
				sub := v.Subscribe(log.SubscribeOptions{Resume: &elsewhere})
				defer sub.Close()
				var batch log.Batch
				reset, deleted := false, false
				for sub.Next(&batch) {
					reset = reset || batch.Count(stream.Reset) > 0
					deleted = deleted || batch.Count(stream.Delete) > 0
				}
				if reset == c.resumes || deleted {
					t.Errorf("reset: %t, delete: %t; the position is to be resumed: %t", reset, deleted, c.resumes)
				}
			})
		})
	}
}
