package store

import (
	"slices"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// TestSortByRevision: each resource is there once, by rising revision.
func TestSortByRevision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		revisions := rapid.SliceOfNDistinct(rapid.Uint64(), 0, 50, rapid.ID).Draw(t, "revisions")
		all := make([]stream.Resource, len(revisions))
		for i, r := range revisions {
			all[i] = stream.Resource{Key: string(rune('a' + i)), Revision: r}
		}
		want := slices.Clone(all)
		slices.SortFunc(want, func(a, b stream.Resource) int {
			if a.Revision < b.Revision {
				return -1
			}
			return 1
		})
		if err := sortByRevision(nil, all, func(r *stream.Resource) *stream.Resource { return r }); err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(all, want, func(a, b stream.Resource) bool { return a.Key == b.Key && a.Revision == b.Revision }) {
			t.Fatalf("%v, want %v", all, want)
		}
	})
}
