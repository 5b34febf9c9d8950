package realserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestOutputKeepsTheTail(t *testing.T) {
	o := newOutput()
	out := stdout{o}
	for i := range 20_000 {
		fmt.Fprintf(out, "line %d\n", i)
	}
	got := o.String()
	if !strings.HasSuffix(got, "line 19999\n") || len(got) > tailSize+len("…") {
		t.Errorf("kept %d bytes ending in %q: want the last %d", len(got), got[max(0, len(got)-20):], tailSize)
	}
	if newOutput().String() == "" {
		t.Error("silence is not named")
	}
}

func TestReadyLineMayComeInPieces(t *testing.T) {
	got := readyIn("rea", "dy\nalready x\nready 127.0", ".0.1:1 a b", "\nready 127.0.0.1:2\n")
	if want := []string{"127.0.0.1:1", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q: want %q", got, want)
	}
}

// readyIn returns what follows "ready" in the output; nil: nothing.
func readyIn(pieces ...string) []string {
	o := newOutput()
	for _, piece := range pieces {
		stdout{o}.Write([]byte(piece))
	}
	select {
	case words := <-o.ready:
		return words
	default:
		return nil
	}
}

// FuzzReady: it does not matter in what pieces a server prints.
func FuzzReady(f *testing.F) {
	f.Add("a line\nready 127.0.0.1:1 x\n", 9)
	f.Add("ready\nready \tx\r\n", 3)
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = min(max(at, 0), len(text))
		whole, pieces := readyIn(text), readyIn(text[:at], text[at:])
		if !slices.Equal(whole, pieces) {
			t.Errorf("%q at once and %q in two pieces", whole, pieces)
		}
		if whole != nil && len(whole) == 0 {
			t.Error("ready without an address")
		}
	})
}
