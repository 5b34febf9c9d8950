//go:build peers

package feed

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRoundTrip: published events arrive, in the same groups.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		publishes := rapid.SliceOf(rapid.SliceOf(rapid.SliceOf(rapid.Byte()))).Draw(t, "publishes")
		var frames, answers bytes.Buffer
		answers.Write(make([]byte, len(publishes)))
		w := NewWriter(&frames, &answers)
		for _, events := range publishes {
			if err := w.Publish(events); err != nil {
				t.Fatal(err)
			}
		}
		r := NewReader(&frames, &answers)
		for i, want := range publishes {
			got, err := r.Next()
			if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
				t.Fatalf("publish %d: %q, %v: want %q", i, got, err, want)
			}
			if err := r.Answer(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("at the end: %v, want EOF", err)
		}
		if answers.Len() != len(publishes) {
			t.Fatalf("%d answers to %d publishes", answers.Len(), len(publishes))
		}
	})
}

// TestCutFrames: an end inside a frame is an error, and not the end.
func TestCutFrames(t *testing.T) {
	whole := Append(nil, [][]byte{[]byte("one"), []byte("two")})
	for n := range whole[1:] {
		_, err := NewReader(bytes.NewReader(whole[:n+1]), nil).Next()
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d of %d bytes: %v, want an unexpected EOF", n+1, len(whole), err)
		}
	}
}

// FuzzNext: whatever the input, the reader neither panics nor requests memory
// that no frame needs.
func FuzzNext(f *testing.F) {
	f.Add(Append(nil, [][]byte{[]byte(`{"at":1}`), nil}))
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b), io.Discard)
		for {
			events, err := r.Next()
			if err != nil {
				return
			}
			again := Append(nil, events)
			if !bytes.Contains(b, again) {
				t.Fatalf("%q read from %q, which does not hold it", again, b)
			}
		}
	})
}
