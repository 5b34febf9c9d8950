package log

import (
	"fmt"
	"testing"
)

// TestSkippedOfARenewedCatchUp: a reader that loses its version in the middle of a catch-up was
// sent values that the log does not have any more when the catch-up ends. What it has skipped
// is never less than nothing, nor more than there was.
func TestSkippedOfARenewedCatchUp(t *testing.T) {
	const n = 3000
	w := NewWriter(Config{Watch: "w"})
	mustReplace(t, w, "e", n, larges(n, 1000)...)
	inSync(w)
	p := newKeyed(w, keysIn("k"))
	logs := map[string]*Log{"the log": w.Log, "a part of it": p.Log()}
	readers := map[string]*follower{}
	for name, l := range logs {
		r := &follower{s: l.Subscribe(SubscribeOptions{}), state: map[string]uint64{}}
		defer r.s.Close()
		for r.flush() {
		}
		r.upserts, readers[name] = 0, r
	}
	changes := uint64(0)
	rewrite := func() {
		for i := range uint64(n) {
			changes++
			mustCommit(t, w, n+changes, large(fmt.Sprint("k", i), n+changes, 1000))
		}
		p.feed(w)
	}
	rewrite()
	for _, r := range readers {
		for r.upserts < n-100 {
			r.flush()
		}
	}
	rewrite()
	for name, r := range readers {
		logs[name].pins.TakeAll()
		for r.flush() {
		}
		sent, skipped := uint64(r.upserts), r.s.Skipped()
		if r.renewed != 2 || sent < 2*n-200 || sent > changes {
			t.Fatalf("%s: %d of %d changes were sent, with %d states", name, sent, changes, r.renewed)
		}
		if skipped > changes-sent {
			t.Errorf("%s: %d of %d changes were sent, and %d skipped", name, sent, changes, skipped)
		}
		if name == "the log" && skipped != changes-sent {
			t.Errorf("%d of %d changes were sent, and %d skipped, want all others", sent, changes, skipped)
		}
	}
}
