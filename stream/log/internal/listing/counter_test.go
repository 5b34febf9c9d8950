package listing

import (
	"fmt"
	"testing"
)

// TestPrefixCountsAreBounded: the newest counts are kept, and no more than so many.
func TestPrefixCountsAreBounded(t *testing.T) {
	var counts *prefixCounts
	for i := range 100 {
		counts = counts.with(prefixCount{1, 2, fmt.Sprint(i), i})
	}
	if n := len(*counts); n != maxPrefixCounts {
		t.Errorf("%d counts are kept, want %d", n, maxPrefixCounts)
	}
	for prefix, want := range map[string]bool{"99": true, fmt.Sprint(100 - maxPrefixCounts): true, fmt.Sprint(99 - maxPrefixCounts): false} {
		if _, known := counts.find(1, 2, prefix); known != want {
			t.Errorf("prefix %s is known: %t, want %t", prefix, known, want)
		}
	}
	if _, known := counts.find(1, 3, "99"); known {
		t.Error("the count of another version is used")
	}
}
