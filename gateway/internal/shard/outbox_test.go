package shard

import (
	"bufio"
	"bytes"
	"io"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"pgregory.net/rapid"
)

// TestOutbox checks that a reader of chunks gets exactly what was written, in
// whatever pieces it is taken.
func TestOutbox(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o outbox
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
		o.raw([]byte(wire.LastChunk))
		take(1 << 30)
		if !o.empty() || len(o.slices) > 0 || cap(o.buffer) > outboxKept {
			t.Fatalf("it holds %d slices, %d bytes", len(o.slices), cap(o.buffer))
		}
		got, err := io.ReadAll(httputil.NewChunkedReader(bufio.NewReader(&taken)))
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

// TestOutboxWithFile: what a file has of an outbox follows the rest, and the outbox is empty once both are
// written.
func TestOutboxWithFile(t *testing.T) {
	var o outbox
	o.raw([]byte("head"))
	from := len(o.slices)
	o.Write(make([]byte, 3*outboxSmall))
	o.seal()
	o.holds = 100
	file, err := epoll.NewFile(o.slices[from:], nil)
	if err != nil {
		t.Skip(err)
	}
	o.cut(from, 10)
	o.attach(file, 0)
	if o.unsent != len("head") || o.holds != 10 || o.said != 3*outboxSmall || !o.full() || o.empty() {
		t.Fatalf("%+v", o)
	}
	o.sent(len("head"))
	o.sentFile(1)
	if o.empty() || !o.full() {
		t.Error("the outbox has nothing although a file is not written")
	}
	o.sentFile(file.Size() - 1)
	if !o.empty() || o.full() || len(o.buffer) > 0 || o.from > 0 || o.holds > 0 {
		t.Errorf("everything is written, and %+v is left", o)
	}
	o.Write([]byte("more"))
	o.seal()
	if got := string(bytes.Join(o.slices, nil)); got != "4\r\nmore\r\n" {
		t.Errorf("then %q is to be written", got)
	}
}
