package load

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLastIDAcrossReads: however a stream is cut, the last whole id line counts.
func TestLastIDAcrossReads(t *testing.T) {
	line := rapid.SampledFrom([]string{"id: a", "id: bc", "id: cut\r", "data: id: no", "", "1f4\r", "event: e"})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 1, 20).Draw(t, "lines")
		want := ""
		for _, l := range lines[:len(lines)-1] {
			if id, ok := strings.CutPrefix(l, "id: "); ok && id != "cut\r" {
				want = id
			}
		}
		var l lastID
		for rest := strings.Join(lines, "\n"); rest != ""; {
			cut := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			l.scan([]byte(rest[:cut]))
			rest = rest[cut:]
		}
		if string(l.id) != want {
			t.Fatalf("last ID %q of %q, want %q", l.id, lines, want)
		}
	})
}

// TestStampAcrossReads: however a stream is cut, each timestamp is read once.
func TestStampAcrossReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 5).Draw(t, "events")
		var s stamp
		var h Histogram
		before := rapid.SampledFrom([]string{`"at":`, `"revision":"`}).Draw(t, "before")
		at := newMarker([]byte(before))
		for rest := strings.Repeat(`data: {`+before+`900","pad":"at"}`+"\n", n); rest != ""; {
			cut := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			s.scan([]byte(rest[:cut]), 1000, &at, &h)
			rest = rest[cut:]
		}
		if h.Count() != uint64(n) || n > 0 && h.Max() != 100 {
			t.Fatalf("%d timestamps, the oldest %v ago: want %d and 100 ns", h.Count(), h.Max(), n)
		}
	})
}
