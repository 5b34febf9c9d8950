package load

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestMarkerAcrossReads: however a stream is cut, the matches are those of the
// whole. Few letters make markers that overlap themselves.
func TestMarkerAcrossReads(t *testing.T) {
	letters := rapid.SampledFrom([]byte("ab\n"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(letters, 1, 6).Draw(t, "marker")
		stream := rapid.SliceOfN(letters, 0, 200).Draw(t, "stream")
		m := newMarker(text)
		got, state := 0, uint8(0)
		for rest := stream; len(rest) > 0; {
			cut := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			n, after := m.count(rest[:cut], state)
			got, state, rest = got+n, after, rest[cut:]
		}
		if want := bytes.Count(stream, text); got != want {
			t.Fatalf("%q counted %d times in %q, want %d", text, got, stream, want)
		}
	})
}

func BenchmarkMarker(b *testing.B) {
	event := "event: upsert\ndata: {\"type\":\"upsert\",\"watch\":\"services\",\"key\":\"k000001\",\"revision\":\"1234567\",\"value\":{\"at\":1700000000000000000,\"pad\":\"" +
		string(bytes.Repeat([]byte("x"), 160)) + "\"}}\nid: services@bench-1234567\n\n"
	stream := bytes.Repeat([]byte(event), 500)
	m := newMarker([]byte("\nevent: upsert\n"))
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		if n, _ := m.count(stream, 0); n != 499 {
			b.Fatal(n)
		}
	}
}
