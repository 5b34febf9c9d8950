package wire

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// unzip reads a whole stream. It fails unless the checksum is right.
func unzip(t rapid.TB, p []byte) []byte {
	t.Helper()
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
		var pieces []Piece
		var texts [][]byte
		for range rapid.IntRange(1, 4).Draw(t, "pieces") {
			text := [][]byte{drawText(t, "text"), drawText(t, "its rest")}
			texts = append(texts, slices.Concat(text...))
			pieces = append(pieces, Compress(text))
		}
		out, want, sum := []byte(Head), []byte(nil), Sum{}
		for range rapid.IntRange(0, 8).Draw(t, "length") {
			i := rapid.IntRange(0, len(pieces)-1).Draw(t, "which")
			want = append(want, texts[i]...)
			if rapid.Bool().Draw(t, "stored") {
				out, sum = AppendStored(out, texts[i]), sum.Write(texts[i])
				continue
			}
			out, sum = append(out, pieces[i].Bytes...), sum.Then(pieces[i].Sum)
		}
		if got := unzip(t, sum.AppendEnd(out)); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, want %d", len(got), len(want))
		}
	})
}

// TestPiecesAreComplete checks that a reader gets all of a piece before anything
// follows.
func TestPiecesAreComplete(t *testing.T) {
	here, there := io.Pipe()
	defer there.Close()
	go func() { _, _ = there.Write([]byte(Head)) }()
	r, err := gzip.NewReader(here)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"x", strings.Repeat("abc", 100), ": heartbeat\n\n", strings.Repeat("long", 50_000)} {
		for name, p := range map[string][]byte{"compressed": Compress([][]byte{[]byte(text)}).Bytes, "stored": AppendStored(nil, []byte(text))} {
			go func() { _, _ = there.Write(p) }()
			got := make([]byte, len(text))
			if _, err := io.ReadFull(r, got); err != nil || string(got) != text {
				t.Fatalf("%s: %.20q…, %v", name, got, err)
			}
		}
	}
}

// TestDeflateThatDoesNotPay checks that text that does not compress is stored.
func TestDeflateThatDoesNotPay(t *testing.T) {
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	for size := range 300 {
		p := Compress([][]byte{noise[:size]})
		if more := len(p.Bytes) - size; more > StoredExtra {
			t.Errorf("%d bytes became %d", size, len(p.Bytes))
		}
	}
	if got := len(Compress([][]byte{noise}).Bytes); got > len(noise)+2*StoredExtra {
		t.Errorf("%d bytes became %d", len(noise), got)
	}
	json := []byte(strings.Repeat(`{"type":"upsert","watch":"services"}`, 10))
	if got := len(Compress([][]byte{json}).Bytes); got > len(json)/4 {
		t.Errorf("%d bytes of repetition became %d", len(json), got)
	}
}

// TestStreamThatIsCutOff checks that a truncated stream differs from one that ended.
func TestStreamThatIsCutOff(t *testing.T) {
	text := []byte("data: {}\n\n")
	whole := SumOf(text).AppendEnd(append([]byte(Head), Compress([][]byte{text}).Bytes...))
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
	for _, size := range []int{0, 1, maxStored, maxStored + 1, 5*maxStored - 1} {
		text := bytes.Repeat([]byte("text"), size/4+1)[:size]
		before, out := Compress([][]byte{[]byte("before ")}), []byte(Head)
		out = append(out, before.Bytes...)
		began := len(out)
		sum, got := Store([][]byte{text, []byte(" and a rest")}, func(p []byte) {
			out = append(out, p...)
		})
		if got != len(out)-began {
			t.Errorf("%d bytes: a piece of %d, said to be of %d", size, len(out)-began, got)
		}
		want := "before " + string(text) + " and a rest"
		if all := unzip(t, before.Sum.Then(sum).AppendEnd(out)); string(all) != want {
			t.Errorf("%d bytes: got %d, want %d", size, len(all), len(want))
		}
	}
}
