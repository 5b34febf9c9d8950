package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// hanging is an output that takes nothing until it is released.
type hanging struct {
	bytes.Buffer
	released chan struct{}
}

func (h *hanging) Write(p []byte) (int, error) {
	<-h.released
	return h.Buffer.Write(p)
}

// TestLinesOfAnOutputThatHangs: nobody waits for it, what waits is bounded, and what is lost is
// said.
func TestLinesOfAnOutputThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &hanging{released: make(chan struct{})}
		l := NewLogLines(out, func(w io.Writer, lost int) { fmt.Fprintf(w, "lost %d\n", lost) })
		fmt.Fprintln(l, "first")
		synctest.Wait() // it hangs in the first line
		line := strings.Repeat("x", 1023)
		for range 2 * mostWaiting >> 10 {
			fmt.Fprintln(l, line)
		}
		if n := len(l.waiting); n != mostWaiting {
			t.Errorf("%d bytes wait, want %d", n, mostWaiting)
		}
		if err := l.Close(time.Second); err == nil {
			t.Error("it was closed, although the output takes nothing")
		}
		close(out.released)
		synctest.Wait()
		text := out.String()
		if n := strings.Count(text, line); !strings.HasPrefix(text, "first\n") || n != mostWaiting>>10 || !strings.HasSuffix(text, fmt.Sprintf("lost %d\n", n)) {
			t.Errorf("%d lines, and at the end %q", n, text[max(0, len(text)-20):])
		}
	})
}

// TestLinesAreInOrder: each line is written, in order, before Close returns.
func TestLinesAreInOrder(t *testing.T) {
	var out, want bytes.Buffer
	l := NewLogLines(&out, func(_ io.Writer, lost int) { t.Errorf("%d lines were lost", lost) })
	for i := range 1000 {
		fmt.Fprintln(l, i)
		fmt.Fprintln(&want, i)
	}
	if err := l.Close(time.Minute); err != nil {
		t.Fatal(err)
	}
	if out.String() != want.String() {
		t.Errorf("%d bytes were written, want %d", out.Len(), want.Len())
	}
}
