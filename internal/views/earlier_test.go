package views

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// began is a watch that knows from its upstream what was deleted after revision 2, before its first
// snapshot at 10. What the resources were is not known.
func began(t *testing.T) *fixture {
	return scriptedOf(t, watch.Config{}, []streamtest.Step{
		streamtest.Reset("e"), streamtest.Delete("secret", 5), streamtest.Delete("seen", 7),
		streamtest.Upsert("old", 1, `{"n":1}`), streamtest.Upsert("changed", 6, `{"n":2}`), streamtest.Upsert("new", 8, `{"n":1}`),
		streamtest.DeletesCompleteAfter(2), streamtest.Commit(10), streamtest.Hang(),
	})
}

// TestDeletesFromBeforeTheStart: a view that hides nothing deletes whatever a reader may have had. It
// does not know more than its watch.
func TestDeletesFromBeforeTheStart(t *testing.T) {
	for _, text := range kinds {
		synctest.Test(t, func(t *testing.T) {
			f, d := began(t), filter(t, text)
			at := func(revision uint64) []string {
				return resumed(t, f, d, place(f, d, revision), true)
			}
			expectTexts(t, at(3), "bookmark@3", "-secret@5", "-changed@6", "-seen@7", `new={"n":1}@8`, "end@10")
			expectTexts(t, at(1), "reset expired", `old={"n":1}@1`, `new={"n":1}@8`, "end@10")
		})
	}
}

// place is a position in a view of an upstream's order.
func place(f *fixture, d *view.Definition, revision uint64) *stream.Position {
	return &stream.Position{Watch: "w", Epoch: d.Epoch(f.base.Snapshot().Epoch()), Upserts: revision, AsOf: revision}
}

// TestDeletesFromBeforeTheStartAreHidden: a delete from before the first state may name what was
// hidden. So a view that hides resources has none of these deletes, whatever position somebody makes
// up, and nothing that happened before it is in its history.
func TestDeletesFromBeforeTheStartAreHidden(t *testing.T) {
	for _, text := range kinds {
		for revision := range uint64(11) {
			synctest.Test(t, func(t *testing.T) {
				f, d := began(t), definition(t, view.Params{Grants: []view.Grant{{Filter: text}}})
				got := resumed(t, f, d, place(f, d, revision), true)
				want := []string{"reset expired", `old={"n":1}@1`, `new={"n":1}@8`, "end@10"}
				if revision >= 8 { // nothing has changed since
					want = want[len(want)-1:]
				}
				if revision == 8 || revision == 9 {
					want = []string{fmt.Sprint("bookmark@", revision), "end@10"} // values may be missing until then
				}
				expectTexts(t, got, want...)
				if text := fmt.Sprint(got); strings.Contains(text, "secret") || strings.Contains(text, "seen") {
					t.Errorf("from %d: %s", revision, text)
				}
				if since := f.base.Snapshot().Exact(); since < 8 {
					t.Errorf("nothing is in doubt since %d, want 8 or later", since)
				}
			})
		}
	}
}
