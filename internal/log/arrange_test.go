package log

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// TestArrange: changes of one revision keep their order, and deletes without a
// revision of their own come after everything else.
func TestArrange(t *testing.T) {
	for range 100 {
		at := Order{Before: rand.Uint64N(15), Unnumbered: rand.IntN(4) == 0}
		changes := make([]Change, rand.IntN(100))
		for i := range changes {
			changes[i] = Change{Resource: stream.Resource{Key: fmt.Sprint(i), Revision: rand.Uint64N(20)}, Deleted: rand.IntN(3) == 0}
		}
		var want, unnumbered []Change
		for _, c := range changes {
			if c.Deleted && (at.Unnumbered || c.Revision <= at.Before) {
				unnumbered = append(unnumbered, c)
			} else {
				want = append(want, c)
			}
		}
		slices.SortStableFunc(want, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
		want = append(want, unnumbered...)
		if got := at.Arrange(changes); !slices.EqualFunc(got, want, func(a, b Change) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("%+v: got  %v\nwant %v", at, got, want)
		}
	}
}
