package client

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func bodyOf(t testing.TB, r io.Reader, limit int) *body {
	t.Helper()
	s := newSilence(time.Hour, func() {})
	t.Cleanup(s.end)
	return newBody(io.NopCloser(r), s, limit, nil)
}

// wholeEvents is text up to the end of its last whole event, with lines that end with \n: an
// oracle that reads line by line.
func wholeEvents(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	whole, at := 0, 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		at += len(line)
		if line == "\n" {
			whole = at
		}
	}
	return text[:whole]
}

// A body may come in any pieces. Only whole events are handed over.
func TestBodyHandsOverWholeEvents(t *testing.T) {
	const text = "retry: 1\n\nevent: a\ndata: {}\nid: x\n\n: heartbeat\n\n\n\r\nevent: b\r\ndata: 1\r\n\r\nevent: c\rdata: 1\r\r\nevent: d\r\rdata: \n\revent: cut\ndata: {}\nid: y@e-12"
	for end := range len(text) {
		for name, pieces := range map[string]func(io.Reader) io.Reader{
			"byte by byte": iotest.OneByteReader, "in halves": iotest.HalfReader,
			"at once": func(r io.Reader) io.Reader { return r }, "with its end": iotest.DataErrReader,
		} {
			got, err := io.ReadAll(bodyOf(t, pieces(strings.NewReader(text[:end])), 1<<20))
			if want := wholeEvents(text[:end]); err != nil || string(got) != want {
				t.Fatalf("%s, cut at %d: got %v and %q, want %q", name, end, err, got, want)
			}
		}
	}
}

// An event is handed over with the \r that ends it: more may come long after.
func TestBodyWaitsForNoMoreThanTheEndOfALine(t *testing.T) {
	in, out := io.Pipe()
	defer in.Close()
	go out.Write([]byte("data: 1\r\r"))
	p := make([]byte, 1024)
	if n, err := bodyOf(t, in, 1<<20).Read(p); err != nil || string(p[:n]) != "data: 1\n\n" {
		t.Errorf("got %q, %v", p[:n], err)
	}
}

// One Read hands over one event: the r3labs reader searches its whole buffer for
// each of them.
func TestBodyHandsOverOneEventAtATime(t *testing.T) {
	b := bodyOf(t, strings.NewReader("data: 1\n\ndata: 2\n\n"), 1<<20)
	p := make([]byte, 1024)
	for _, want := range []string{"data: 1\n\n", "data: 2\n\n"} {
		if n, err := b.Read(p); err != nil || string(p[:n]) != want {
			t.Errorf("got %q, %v, want %q", p[:n], err, want)
		}
	}
}

func TestBodyRefusesLargeEvents(t *testing.T) {
	const limit = 100_000
	for name, c := range map[string]struct {
		bytes int
		whole bool
		ok    bool
	}{
		"as large as allowed":   {limit, true, true},
		"one byte too large":    {limit + 1, true, false},
		"too large and not cut": {3 * limit, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := "data: " + strings.Repeat("x", c.bytes-8)
			if c.whole {
				text += "\n\n"
			}
			got, err := io.ReadAll(bodyOf(t, strings.NewReader("data: small\n\n"+text), limit))
			if c.ok && (err != nil || len(got) != c.bytes+13) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
			if !c.ok && (!errors.Is(err, ErrInvalid) || string(got) != "data: small\n\n") {
				t.Errorf("got %d bytes, %v, want the small event and ErrInvalid", len(got), err)
			}
		})
	}
}

// The buffer of a large event is not kept forever.
func TestBodyFreesALargeBuffer(t *testing.T) {
	large := "data: " + strings.Repeat("x", 4*keepBytes) + "\n\n"
	b := bodyOf(t, io.MultiReader(strings.NewReader(large), strings.NewReader("data: small\n\n")), 1<<30)
	if got, err := io.ReadAll(b); err != nil || len(got) != len(large)+13 {
		t.Fatalf("got %d bytes, %v", len(got), err)
	}
	if len(b.buffer) > keepBytes {
		t.Errorf("%d bytes are kept, want at most %d", len(b.buffer), keepBytes)
	}
}

func FuzzBody(f *testing.F) {
	f.Add([]byte("data: 1\n\ndata: 2\r\n\r\nda"), uint8(3), uint16(64))
	f.Add([]byte("\n\n\r\n\r\r\n"), uint8(1), uint16(2))
	f.Fuzz(func(t *testing.T, text []byte, piece uint8, read uint16) {
		b := bodyOf(t, &chopped{text, int(piece) + 1}, 1<<20)
		var got bytes.Buffer
		p := make([]byte, int(read)+1)
		for {
			n, err := b.Read(p)
			got.Write(p[:n])
			if err == io.EOF {
				break
			}
			if err != nil || n == 0 {
				t.Fatalf("Read returned %d, %v", n, err)
			}
		}
		if want := wholeEvents(string(text)); got.String() != want {
			t.Errorf("got  %q\nwant %q", got.String(), want)
		}
	})
}

// chopped reads in pieces.
type chopped struct {
	text  []byte
	piece int
}

func (c *chopped) Read(p []byte) (int, error) {
	if len(c.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.text[:min(c.piece, len(c.text))])
	c.text = c.text[n:]
	return n, nil
}
