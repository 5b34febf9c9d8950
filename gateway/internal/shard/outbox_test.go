package shard

import (
	"bufio"
	"bytes"
	"io"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/wire"
	"pgregory.net/rapid"
)

// TestOutbox checks that a reader of chunks, or of bare bytes, gets exactly what was written,
// in whatever pieces it is taken.
func TestOutbox(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := outbox{bare: rapid.Bool().Draw(t, "bare")}
		var said, taken bytes.Buffer
		take := func(n int) {
			all := slices.Concat(o.slices...)
			n = min(n, len(all))
			taken.Write(all[:n])
			o.sent(n)
		}
		for range rapid.IntRange(0, 12).Draw(t, "flushes") {
			for range rapid.IntRange(0, 6).Draw(t, "writes") {
				size := rapid.SampledFrom([]int{0, 1, 3, 200, outboxSmall, outboxSmall + 1, 70_000}).Draw(t, "size")
				p := bytes.Repeat([]byte{byte('a' + said.Len()%26)}, size)
				said.Write(p)
				o.Write(p)
				if size <= outboxSmall {
					clear(p) // it was copied
				}
			}
			o.seal()
			for !o.empty() && rapid.Bool().Draw(t, "take") {
				take(rapid.IntRange(1, 100_000).Draw(t, "taken"))
			}
		}
		if !o.bare {
			o.raw([]byte(wire.LastChunk))
		}
		take(1 << 30)
		if !o.empty() || len(o.slices) > 0 || cap(o.buffer) > outboxKept {
			t.Fatalf("it holds %d slices, %d bytes", len(o.slices), cap(o.buffer))
		}
		var reader io.Reader = bufio.NewReader(&taken)
		if !o.bare {
			reader = httputil.NewChunkedReader(reader)
		}
		got, err := io.ReadAll(reader)
		if err != nil || !bytes.Equal(got, said.Bytes()) {
			t.Fatalf("got %d bytes, %v; want %d", len(got), err, said.Len())
		}
	})
}

func TestOutboxWithoutData(t *testing.T) {
	var o outbox
	o.seal()
	o.Write(nil)
	o.seal()
	if !o.empty() {
		t.Errorf("%q", o.slices)
	}
	o.Write([]byte(strings.Repeat("x", 26)))
	o.seal()
	if got := string(slices.Concat(o.slices...)); got != "1a\r\n"+strings.Repeat("x", 26)+"\r\n" {
		t.Errorf("%q", got)
	}
}
