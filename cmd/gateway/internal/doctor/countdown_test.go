package doctor

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// TestCountdown checks that a terminal shows what is waited for, and for how long yet, in a
// line that is gone afterwards.
func TestCountdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := &countdown{out: &out, shown: true, escape: bytes.ToUpper}
		c.begin("waiting", 3*time.Second)
		time.Sleep(1500 * time.Millisecond)
		c.begin("again", time.Second)
		synctest.Wait()
		c.end()
		c.end()
		const clear = "\r\x1b[K"
		if got, want := out.String(), clear+"WAITING (at most 3s)"+clear+"WAITING (at most 2s)"+clear+clear+"AGAIN (at most 1s)"+clear; got != want {
			t.Errorf("got %q\nwant %q", got, want)
		}
		quiet := &countdown{out: &out}
		out.Reset()
		quiet.begin("waiting", time.Second)
		quiet.end()
		if out.Len() > 0 {
			t.Errorf("without a terminal: %q", out.String())
		}
	})
}
