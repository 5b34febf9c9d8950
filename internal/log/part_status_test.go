package log

import (
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// TestStatusOfAPartInTheMaking checks that a status shows nothing of a part that is not
// complete.
func TestStatusOfAPartInTheMaking(t *testing.T) {
	w := NewWriter(Config{Watch: "w"})
	mustReplace(t, w, "e", 2, upsert("a", 1), upsert("b", 2))
	p := NewView(w.Log, Config{Watch: "w"})
	s := w.Snapshot()
	p.Begin(s, "part", s.Revision())
	for e := range s.Entries(0) {
		p.Add(e, nil)
		p.SetStatus(stream.Status{State: stream.Priming, Reason: "it takes long"})
		if got := p.Log().Snapshot(); got.Primed() || got.Status().Reason != "it takes long" {
			t.Errorf("primed %v, %v", got.Primed(), got.Status())
		}
	}
	p.Publish(s)
	if got := p.Log().Snapshot(); !got.Primed() || got.Count() != 2 || got.Revision() != 2 || got.Status() != s.Status() {
		t.Errorf("%d resources at %d, %v", got.Count(), got.Revision(), got.Status())
	}
}
