package introspection

import (
	"net/http"
	"testing"
	"time"
)

// TestTookErrsByHalfOfTheRoundTrip checks that the figure is wrong by at most half of the
// round trip, however it is divided between the directions.
func TestTookErrsByHalfOfTheRoundTrip(t *testing.T) {
	committed := time.Now()
	const took, ago, roundTrip = 300 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond
	for there := time.Duration(0); there <= roundTrip; there += 5 * time.Millisecond {
		received := committed.Add(took + ago + there)
		got := Took(committed, received, float64(ago.Milliseconds()), float64(roundTrip.Milliseconds()))
		if wrong := (got - took).Abs(); wrong > roundTrip/2 {
			t.Errorf("%v on the way: %v, want %v ± %v", there, got, took, roundTrip/2)
		}
	}
	if got := Took(committed, committed, 60_000, 0); got != 0 {
		t.Errorf("a paint before the commit: %v", got)
	}
}

// FuzzReport checks that what is accepted is in range.
func FuzzReport(f *testing.F) {
	for _, body := range []string{
		`{"round_trip_ms":1.5,"painted":[{"watch":"a","revision":"1","ago_ms":0}]}`, `{"painted":[{"watch":"a","revision":1,"ago_ms":0}]}`,
		`{"painted":[]}`, `{"painted":[{"watch":"a","revision":"1","ago_ms":-1}]}`, `{"painted":[{"watch":"a","revision":"1","ago_ms":1e9}]}`,
		`{"round_trip_ms":1e99,"painted":[{}]}`, `null`, `[]`, `{} {}`, ``,
	} {
		f.Add([]byte(body))
	}
	committed := time.Now()
	f.Fuzz(func(t *testing.T, body []byte) {
		got, p := parse(body)
		if p != nil {
			if p.Status != http.StatusBadRequest || p.Detail == "" {
				t.Errorf("%q: %+v", body, p)
			}
			return
		}
		if len(got.Painted) == 0 || len(got.Painted) > maxPainted {
			t.Errorf("%q: %d changes", body, len(got.Painted))
		}
		for _, c := range got.Painted {
			if d := Took(committed, committed.Add(time.Minute), c.Ago, got.RoundTrip); d < 0 || d > time.Minute {
				t.Errorf("%q: %v", body, d)
			}
		}
	})
}
