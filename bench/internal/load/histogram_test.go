package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestQuantile compares with the sorted values.
func TestQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, math.MaxInt64), 1, 100).Draw(t, "values")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		var h, other Histogram
		for i, v := range values {
			if i%2 == 0 {
				h.Record(time.Duration(v))
			} else {
				other.Record(time.Duration(v))
			}
		}
		encoded, err := other.GobEncode()
		if err != nil {
			t.Fatal(err)
		}
		var decoded Histogram
		if err := decoded.GobDecode(encoded); err != nil {
			t.Fatal(err)
		}
		h.Merge(&decoded)
		slices.Sort(values)
		want := values[min(int(q*float64(len(values))), len(values)-1)]
		if got := int64(h.Quantile(q)); got < want || float64(got-want) > float64(want)/fine {
			t.Fatalf("quantile %v is %d, want %d or at most 1/%d more", q, got, want, fine)
		}
		if h.Count() != uint64(len(values)) || int64(h.Max()) != values[len(values)-1] {
			t.Fatalf("count %d, largest %d", h.Count(), h.Max())
		}
	})
}
