package adapter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// recordedSink collects what a Merge commits.
type recordedSink struct {
	stream.Sink
	epoch    string
	state    map[string]stream.Resource
	revision uint64
}

func (s *recordedSink) Reset(epoch string) error {
	s.epoch, s.state = epoch, map[string]stream.Resource{}
	return nil
}
func (s *recordedSink) Upsert(r stream.Resource) error    { s.state[r.Key] = r; return nil }
func (s *recordedSink) Commit(revision uint64) error      { s.revision = revision; return nil }
func (s *recordedSink) Delete(key string, _ uint64) error { delete(s.state, key); return nil }

func (s *recordedSink) String() string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(s.state)) {
		out = append(out, fmt.Sprintf("%s@%d", key, s.state[key].Revision))
	}
	return strings.Join(out, " ")
}

// TestMergeInterleavings tells a Merge one story a line: what the list (L) and the
// watch (U, D) report of keys, in this order, with "end N" where the list is
// complete up to N; "!" where it names its revision. A word may end with the
// expected answer: "=old", "=new", "=doubt", "=gone", "=kept".
func TestMergeInterleavings(t *testing.T) {
	for _, c := range []struct{ name, story, want string }{
		{"list alone", "La1 Lb2 end2!", "a@1 b@2"},
		{"nothing at all", "end0!", ""},
		{"update before its page", "Ua5=new La5 end5!", "a@5"},
		{"update overtakes its page", "Ua5=new La3 end4!", "a@5"},
		{"update after its page", "La3 Ua5=new end4!", "a@5"},
		{"page overtakes the update", "La5 Ua5=old end5!", "a@5"},
		{"page overtakes two updates", "La5 Ua4=old Ua5=old end5!", "a@5"},
		{"update after the end", "La3 end3! Ua5=new", "a@5"},
		{"deletion before its page, which shows it not", "Da5 end5!", ""},
		{"deletion overtakes its page", "Da5=kept La3 end4!", ""},
		{"deletion after its page", "La3 Da5=gone end4!", ""},
		{"deletion after the end", "La3 end3! Da5=gone", ""},
		{"creation and deletion before the page", "Ua4=new Da5=gone end5!", ""},
		{"creation and deletion beside the page", "Ua4=new La4 Da5=gone end4!", ""},
		{"rebirth overtakes its page", "La3 Da5=gone Ua7=new end6!", "a@7"},
		{"page shows the rebirth first", "Da5=kept La7 Ua7=old end7!", "a@7"},
		{"page shows the rebirth before the deletion is told", "La7 Da5=kept Ua7=old end7!", "a@7"},
		{"deletion, stale page, rebirth", "Da5=kept La3 Ua7=new end6!", "a@7"},
		{"creation that no page shows and none could", "Lb9 Ua12=new end9!", "a@12 b@9"},
		{"creation that the page must have shown is gone", "Ua4=new Lb9 end9!", "b@9"},
		{"creation told late that the page must have shown", "Lb9 end9! Ua4=old", "b@9"},
		{"creation and deletion told after the end", "Lb9 Lc20 end9! Ua12=new Da15=gone", "b@9 c@20"},
		{"transaction after the end", "La3 end3! Da7=gone Ub7=new Uc7=new", "b@7 c@7"},

		{"stale watch: older version", "La5 end5 Ua3=old", "a@5"},
		{"stale watch: was swept", "Uz3=new La5 end5", "a@5"},
		{"stale watch: ghost after the end", "La5 end5 Uz3=old Dz3=kept", "a@5"},
		{"stale watch: last created was deleted before the list", "La5 end5 Uz8=doubt Dz8=kept", "a@5"},
		{"beyond the list, told before its end", "Uz8=new La5 end5?z", "a@5"},
		{"beyond the list, confirmed", "La5 end5 Uz8=doubt Cz8 Uy9=new", "a@5 y@9 z@8"},
		{"update of what is listed shows that the watch is past the list", "La5 end5 Ua7=new Uz8=new", "a@7 z@8"},
		{"deletion of what is listed does too", "La5 Lb6 end6 Da5=gone Uz8=new", "b@6 z@8"},
		{"deletion of an older version is stale", "La5 end5 Da4=kept", "a@5"},
		{"deletion under the last version", "La5 end5 Da5=gone", ""},
		{"repetition after a deletion", "La5 end5 Da5=gone Ua5=old", ""},
		{"repetition of what was created and deleted after the list", "La5 Lb6 end6 Ub9=new Db9=gone Ub9=old Uc10=new", "a@5 c@10"},
		{"rebirth after a deletion", "La5 Lb6 end6 Da5=gone Ua9=new", "a@9 b@6"},
		{"deletion under the last version overtakes the list", "Da5=kept La5 end5", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink := &recordedSink{}
			tell(t, c.story, sink)
			if got := sink.String(); got != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.story, got, c.want)
			}
		})
	}
}

// tell tells a story to a Merge, which passes its results on to sink.
func tell(t *testing.T, story string, sink *recordedSink) {
	t.Helper()
	m := NewMerge()
	for _, word := range strings.Fields(story) {
		said, want, answers := strings.Cut(word, "=")
		var got string
		switch {
		case strings.HasPrefix(said, "end"):
			tellEnd(t, m, said, sink)
		default:
			got = tellOne(t, m, said, sink)
		}
		if answers && got != want {
			t.Errorf("%s in %q: %s, want %s", word, story, got, want)
		}
	}
}

func tellOne(t *testing.T, m *Merge, said string, sink *recordedSink) string {
	t.Helper()
	r := stream.Resource{Key: said[1:2], Value: []byte("1")}
	if _, err := fmt.Sscan(said[2:], &r.Revision); err != nil {
		t.Fatal(said, err)
	}
	pass := func(news bool) {
		if news && sink.state != nil {
			_ = sink.Upsert(r)
		}
	}
	switch said[0] {
	case 'L':
		pass(m.Listed(r))
	case 'C':
		m.Confirm(r)
		pass(true)
	case 'U':
		v := m.Upserted(r)
		pass(v == Newer)
		return [...]string{Older: "old", Newer: "new", Doubtful: "doubt"}[v]
	case 'D':
		if !m.Deleted(r.Key, r.Revision) {
			return "kept"
		}
		if sink.state != nil {
			_ = sink.Delete(r.Key, r.Revision)
		}
		return "gone"
	}
	return ""
}

// tellEnd completes the list: "end7", "end7!" (exact), "end7?ab" (in doubt: a, b).
func tellEnd(t *testing.T, m *Merge, said string, sink *recordedSink) {
	t.Helper()
	var listed uint64
	rest := said[len("end"):]
	if _, err := fmt.Sscan(strings.TrimRight(rest, "!?abcdefghijklmnopqrstuvwxyz"), &listed); err != nil {
		t.Fatal(said, err)
	}
	doubtful := m.Complete(listed, strings.HasSuffix(said, "!"))
	var inDoubt []string
	for _, r := range doubtful {
		inDoubt = append(inDoubt, r.Key)
	}
	slices.Sort(inDoubt)
	_, wantDoubt, _ := strings.Cut(said, "?")
	if got := strings.Join(inDoubt, ""); got != wantDoubt {
		t.Errorf("%s: %q are in doubt", said, got)
	}
	if err := m.Commit(sink, "e", listed); err != nil {
		t.Fatal(err)
	}
}

// TestMergeForgetsValues: what was committed is in the log, and need not be held
// twice.
func TestMergeForgetsValues(t *testing.T) {
	m, sink := NewMerge(), &recordedSink{}
	m.Listed(stream.Resource{Key: "a", Revision: 1, Value: []byte("1")})
	m.Complete(1, false)
	if err := m.Commit(sink, "e", 1); err != nil {
		t.Fatal(err)
	}
	if string(sink.state["a"].Value) != "1" {
		t.Error("the value was not committed")
	}
	m.Upserted(stream.Resource{Key: "a", Revision: 2, Value: []byte("2")})
	for key, e := range m.entries {
		if e.resource.Value != nil || e.resource.Key != key {
			t.Errorf("%+v is still held", e.resource)
		}
	}
	if m.Len() != 1 {
		t.Errorf("Len is %d", m.Len())
	}
}

// TestMergeGivesBack: what was counted for a merge is returned by its end.
func TestMergeGivesBack(t *testing.T) {
	sink := &holds{}
	m := NewMerge()
	m.CountAt(sink)
	m.Upserted(sized("a", 5, 100))
	m.Listed(sized("a", 4, 100))
	m.Listed(sized("b", 2, 200))
	m.Listed(sized("c", 3, 200))
	m.Deleted("c", 6)
	m.Complete(4, true)
	if sink.bytes < 300+2*int64(entryCost) {
		t.Errorf("%d bytes are held", sink.bytes)
	}
	if err := m.Commit(sink, "e", 6); err != nil {
		t.Fatal(err)
	}
	if sink.bytes > 3*int64(entryCost+1) {
		t.Errorf("%d bytes are held after the values were handed over", sink.bytes)
	}
	m.Close()
	if sink.bytes != 0 {
		t.Errorf("%d bytes are held after the end", sink.bytes)
	}
}

// sized is a resource whose value has so many bytes, and the quotes.
func sized(key string, revision uint64, bytes int) stream.Resource {
	return stream.Resource{Key: key, Revision: revision, Value: []byte(`"` + strings.Repeat("x", bytes) + `"`)}
}

// holds is a sink that only counts.
type holds struct {
	stream.PlainSink
	bytes int64
}

func (h *holds) Reset(string) error                { return nil }
func (h *holds) Upsert(stream.Resource) error      { return nil }
func (h *holds) Delete(string, uint64) error       { return nil }
func (h *holds) Commit(uint64) error               { return nil }
func (h *holds) Status(stream.State, string) error { return nil }
func (h *holds) Charge(n int64)                    { h.bytes += n }
