package introspection

import (
	"testing"
	"time"
)

func TestNanosComeBack(t *testing.T) {
	for _, want := range []time.Time{{}, time.Now(), time.Now().Add(time.Hour), time.Unix(1_800_000_000, 5)} {
		if got := FromNanos(Nanos(want)); !got.Equal(want) || got.IsZero() != want.IsZero() {
			t.Errorf("%v became %v", want, got)
		}
	}
}
