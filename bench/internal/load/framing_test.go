package load

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestFraming: the body is found, whatever its chunks and however they are read.
func TestFraming(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.SliceOf(rapid.StringMatching(`[a-f0-9\r\n]{1,40}`)).Draw(t, "chunks")
		chunked := rapid.Bool().Draw(t, "chunked")
		stream, want := "HTTP/1.1 200 OK\r\nVary: Accept\r\n", "\n"
		if chunked {
			stream += "Transfer-Encoding: chunked\r\n"
		}
		stream += "\r\n"
		for _, c := range chunks {
			if want += c; chunked {
				c = fmt.Sprintf("%X\r\n%s\r\n", len(c), c)
			}
			stream += c
		}
		if chunked {
			stream += "0\r\n\r\n"
		}
		var f framing
		got := ""
		for len(stream) > 0 {
			cut := rapid.IntRange(1, len(stream)).Draw(t, "cut")
			for b := []byte(stream[:cut]); len(b) > 0; {
				var body []byte
				body, b = f.next(b)
				got += string(body)
			}
			stream = stream[cut:]
		}
		if got != want {
			t.Fatalf("body %q, want %q", got, want)
		}
	})
}
