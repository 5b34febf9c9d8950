package log

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
)

// TestPartSharesSlabs: a part that has most of a log shares its slabs, one that has little
// does not, and both are read as if they were written.
func TestPartSharesSlabs(t *testing.T) {
	w := NewWriter(Config{Watch: "w"})
	var all []Change
	for i := range uint64(3000) {
		all = append(all, upsert(fmt.Sprintf("key-%d", i), i+1))
	}
	mustReplace(t, w, "e", 3000, all...)
	s := w.Snapshot()
	for name, c := range map[string]struct {
		in   func(n int) bool
		lent bool
	}{
		"most":    {func(n int) bool { return n%10 != 0 }, true},
		"all":     {func(int) bool { return true }, true},
		"the odd": {func(n int) bool { return n%7 == 0 }, false},
		"a half":  {func(n int) bool { return n < 1500 }, true},
	} {
		p := NewView(w.Log, Config{Watch: "w"})
		p.Begin(s, "part", s.Revision())
		var want bytes.Buffer
		n := 0
		for e := range s.Entries(0) {
			if n++; c.in(n) {
				p.Add(e, nil)
				want.Write(frame.SSE.AppendEvent(nil, stream.Event{Type: stream.Upsert, Watch: "w", Resource: e.Resource()}, nil))
			}
		}
		p.Publish(s)
		lent := 0
		for _, one := range p.w.head.Load().Segments {
			if one.Lent {
				lent++
			}
		}
		if lent > 0 != c.lent {
			t.Errorf("%s: %d of %d segments share a slab", name, lent, len(p.w.head.Load().Segments))
		}
		if got := textOf(t, p.Log(), 0); got != want.String() {
			t.Errorf("%s: read %d bytes, want %d", name, len(got), want.Len())
		}
		for e := range s.Entries(0) { // changes supersede what is shared, and compaction copies it
			if r, there := p.Log().Snapshot().Get(e.Resource().Key); there && !bytes.Equal(r.Value, e.Resource().Value) {
				t.Errorf("%s: %s has the value %s", name, r.Key, r.Value)
			}
		}
	}
}

// textOf reads a log to its end, and returns the upserts as sent.
func textOf(t *testing.T, l *Log, from int) string {
	t.Helper()
	sub := l.Subscribe(SubscribeOptions{})
	defer sub.Close()
	var b Batch
	var out bytes.Buffer
	for sub.Next(&b) {
		for _, p := range b.pieces {
			if p.segment != nil {
				var one Batch
				one.reset(l)
				one.pieces = []piece{p}
				for _, text := range one.Append(nil, frame.SSE, nil) {
					out.Write(text)
				}
			}
		}
	}
	return out.String()[from:]
}

// TestPartSharesAtAnySize: whatever a part has already when it begins to share a slab of few
// entries.
func TestPartSharesAtAnySize(t *testing.T) {
	w := NewWriter(Config{Watch: "w"})
	var all []Change
	for i := range uint64(400) {
		all = append(all, upsert(fmt.Sprintf("small-%d", i), i+1))
	}
	for i := range uint64(40) {
		large := upsert(fmt.Sprintf("large-%d", i), 401+i)
		large.Value = fmt.Appendf(nil, `"%030000d"`, i)
		all = append(all, large)
	}
	mustReplace(t, w, "e", 440, all...)
	s := w.Snapshot()
	for copied := range uint64(200) {
		p := NewView(w.Log, Config{Watch: "w"})
		p.Begin(s, "part", s.Revision())
		for e := range s.Entries(0) {
			if r := e.Resource(); r.Revision <= copied || r.Revision > 401 {
				p.Add(e, nil)
			}
		}
		p.Publish(s)
		if got, want := p.Log().Snapshot().Count(), int(copied)+39; got != want {
			t.Errorf("the part has %d resources, want %d", got, want)
		}
		for r := range p.Log().Snapshot().Resources() {
			if _, there := p.Log().Snapshot().Get(r.Key); !there {
				t.Fatalf("%d: %s is not found", copied, r.Key)
			}
		}
	}
}
