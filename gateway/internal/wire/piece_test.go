package wire

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

// compressing are the codings that compress.
var compressing = []Coding{Gzip, Zstd}

// decompressed reads a whole body. It fails unless its checksums are right.
func decompressed(t rapid.TB, c Coding, p []byte) []byte {
	t.Helper()
	if c == Zstd {
		d, err := zstd.NewReader(bytes.NewReader(p), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		text, err := io.ReadAll(d)
		if err != nil {
			t.Fatalf("after %d bytes: %v", len(text), err)
		}
		return text
	}
	r, err := gzip.NewReader(bytes.NewReader(p))
	if err != nil {
		t.Fatal(err)
	}
	r.Multistream(false)
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("after %d bytes: %v", len(text), err)
	}
	return text
}

// TestPiecesInAnyOrder checks that pieces in any order, even repeated, make a stream.
func TestPiecesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(compressing).Draw(t, "coding")
		var pieces []Piece
		var texts [][]byte
		for range rapid.IntRange(1, 4).Draw(t, "pieces") {
			text := [][]byte{drawText(t, "text"), drawText(t, "its rest")}
			texts = append(texts, slices.Concat(text...))
			pieces = append(pieces, c.Compress(text))
		}
		out, want, sum := []byte(c.Head()), []byte(nil), Sum{}
		for range rapid.IntRange(0, 8).Draw(t, "length") {
			i := rapid.IntRange(0, len(pieces)-1).Draw(t, "which")
			want = append(want, texts[i]...)
			if rapid.Bool().Draw(t, "stored") {
				out, sum = c.AppendStored(out, texts[i]), sum.Write(texts[i])
				continue
			}
			out, sum = append(out, pieces[i].Bytes...), sum.Then(pieces[i].Sum)
		}
		if got := decompressed(t, c, c.AppendEnd(out, sum)); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, want %d", len(got), len(want))
		}
	})
}

// TestPiecesAreComplete checks that a reader gets all of a piece before anything
// follows.
func TestPiecesAreComplete(t *testing.T) {
	for _, c := range compressing {
		t.Run(c.String(), func(t *testing.T) { testPiecesAreComplete(t, c) })
	}
}

// reader returns a decompressor that reads no more than it needs.
func reader(t *testing.T, c Coding, from io.Reader) io.Reader {
	t.Helper()
	if c == Gzip {
		r, err := gzip.NewReader(from)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func testPiecesAreComplete(t *testing.T, c Coding) {
	here, there := io.Pipe()
	defer there.Close()
	go func() { _, _ = io.WriteString(there, c.Head()) }()
	r := reader(t, c, here)
	for _, text := range []string{"x", strings.Repeat("abc", 100), ": heartbeat\n\n", strings.Repeat("long", 50_000)} {
		for name, p := range map[string][]byte{"compressed": c.Compress([][]byte{[]byte(text)}).Bytes, "stored": c.AppendStored(nil, []byte(text))} {
			go func() { _, _ = there.Write(p) }()
			got := make([]byte, len(text))
			if _, err := io.ReadFull(r, got); err != nil || string(got) != text {
				t.Fatalf("%s: %.20q…, %v", name, got, err)
			}
		}
	}
}

// TestTextThatDoesNotCompress checks that it is stored.
func TestTextThatDoesNotCompress(t *testing.T) {
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	json := []byte(strings.Repeat(`{"type":"upsert","watch":"services"}`, 10))
	for _, c := range compressing {
		for size := range 300 {
			p := c.Compress([][]byte{noise[:size]})
			if more := len(p.Bytes) - size; more > StoredExtra {
				t.Errorf("%s: %d bytes became %d", c, size, len(p.Bytes))
			}
		}
		if got := len(c.Compress([][]byte{noise}).Bytes); got > len(noise)+2*StoredExtra {
			t.Errorf("%s: %d bytes became %d", c, len(noise), got)
		}
		if got := len(c.Compress([][]byte{json}).Bytes); got > len(json)/4 {
			t.Errorf("%s: %d bytes of repetition became %d", c, len(json), got)
		}
	}
}

// TestStreamThatIsCutOff checks that a truncated stream differs from one that ended.
func TestStreamThatIsCutOff(t *testing.T) {
	text := []byte("data: {}\n\n")
	whole := Gzip.AppendEnd(append([]byte(Gzip.Head()), Gzip.Compress([][]byte{text}).Bytes...), SumOf(text))
	for n := range whole {
		r, err := gzip.NewReader(bytes.NewReader(whole[:n]))
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if err == nil {
			t.Errorf("%d of %d bytes count as a whole stream", n, len(whole))
		}
	}
}

// TestStore checks that text stored part by part may follow other pieces.
func TestStore(t *testing.T) {
	for _, c := range compressing {
		t.Run(c.String(), func(t *testing.T) { testStore(t, c) })
	}
}

func testStore(t *testing.T, c Coding) {
	for _, size := range []int{0, 1, maxStored, maxStored + 1, 5*maxStored - 1} {
		text := bytes.Repeat([]byte("text"), size/4+1)[:size]
		before, out := c.Compress([][]byte{[]byte("before ")}), []byte(c.Head())
		out = append(out, before.Bytes...)
		began := len(out)
		sum, got := c.Store([][]byte{text, []byte(" and a rest")}, func(p []byte) {
			out = append(out, p...)
		})
		if got != len(out)-began {
			t.Errorf("%d bytes: a piece of %d, said to be of %d", size, len(out)-began, got)
		}
		want := "before " + string(text) + " and a rest"
		if all := decompressed(t, c, c.AppendEnd(out, before.Sum.Then(sum))); string(all) != want {
			t.Errorf("%d bytes: got %d, want %d", size, len(all), len(want))
		}
	}
}
