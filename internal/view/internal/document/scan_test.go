package document

import (
	"testing"

	"pgregory.net/rapid"
)

// closingByBytes is closing, byte by byte.
func closingByBytes(text []byte, at int) int {
	for ; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at
		}
	}
	return -1
}

func TestClosing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]byte(`\\\""a`)), 0, 40).Draw(t, "text")
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		if got, want := closing(text, at), closingByBytes(text, at); got != want {
			t.Fatalf("closing(%q, %d) = %d, want %d", text, at, got, want)
		}
	})
}
