package stream

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// TestByRevision: changes of one revision stay in their order, since the last of a
// key counts.
func TestByRevision(t *testing.T) {
	for range 100 {
		changes := make([]Change, rand.IntN(100))
		for i := range changes {
			changes[i] = Change{Resource: Resource{Key: fmt.Sprint(i), Revision: rand.Uint64N(20)}}
		}
		want := slices.Clone(changes)
		slices.SortStableFunc(want, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
		if got := byRevision(changes); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	}
}
