package storage

import (
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// testVersion has an upsert of a key of its own for each revision from 10 on, in seqs
// from 1 on and segments of three entries. Those for which gone is true were compacted
// away.
func testVersion(n uint64, gone func(seq uint64) bool) (*Version, *Format) {
	f := NewFormat("w")
	v := &Version{Epoch: "e", Contents: Contents{Index: NewIndex(int(n))}}
	for seq := uint64(1); seq <= n; seq++ {
		if gone(seq) {
			continue
		}
		if len(v.Segments) == 0 || v.Tail == 3 {
			v.Segments, v.First = append(v.Segments, NewSegment(1, 1<<10, 3)), append(v.First, seq)
		}
		s := v.Segments[len(v.Segments)-1]
		r := stream.Resource{Key: string(rune('a' + seq)), Revision: 9 + seq, Value: []byte("1")}
		k := NewKey(r.Key)
		e, frame := s.Reserve(f.Size(&r, false, k.Key))
		f.Append(frame, &r, false, k.Key)
		e.Seq, e.Revision, e.Hash, e.KeyLen, e.Flags = seq, r.Revision, k.Hash, uint32(len(k.Text)), EndsCommit
		v.Index.Set(v.Index.Probe(k.Hash, func(uint64) bool { return false }), k.Hash, seq)
		v.Tail, v.Seq, v.Revision = s.N, seq, r.Revision
		v.Digest = v.Digest.Add(0)
	}
	return v, f
}

// seqAt is the seq of the entry at a place; 0 at the end.
func seqAt(v *Version, p Place) uint64 {
	if p.Segment == len(v.Segments) {
		return 0
	}
	return v.Entry(p).Seq
}

// TestSearches: every search finds the first entry that it is to find, also where
// compaction has left gaps.
func TestSearches(t *testing.T) {
	for name, gone := range map[string]func(uint64) bool{
		"as written": func(uint64) bool { return false },
		"compacted":  func(seq uint64) bool { return seq%5 == 2 || seq > 6 && seq < 12 },
	} {
		v, f := testVersion(20, gone)
		for seq := range uint64(22) {
			next := seq + 1
			for next <= 20 && gone(next) {
				next++
			}
			if next > 20 {
				next = 0
			}
			if got := seqAt(v, v.After(seq)); got != next {
				t.Errorf("%s: after %d comes %d, want %d", name, seq, got, next)
			}
			if got := seqAt(v, v.NewerThan(9+seq)); got != next {
				t.Errorf("%s: newer than %d is first %d, want %d", name, 9+seq, got, next)
			}
			if got := seqAt(v, v.FromRevision(10+seq)); got != next {
				t.Errorf("%s: from %d on is first %d, want %d", name, 10+seq, got, next)
			}
			there := seq > 0 && seq <= 20 && !gone(seq)
			if _, e := v.Find(seq); (e != nil) != there || there && e.Seq != seq {
				t.Errorf("%s: entry %d is found: %t", name, seq, e != nil)
			}
			if _, e := v.Get(f, NewKey(string(rune('a'+seq)))); (e != nil) != there || there && e.Seq != seq {
				t.Errorf("%s: the key of entry %d is found: %t", name, seq, e != nil)
			}
		}
		n := 0
		v.Each(v.Seq, func(*Segment, *Entry) bool { n++; return true })
		if n != v.Count() {
			t.Errorf("%s: %d of %d resources", name, n, v.Count())
		}
	}
}

// TestVersionEndsAtItsTail: what the writer has appended since is not part of it.
func TestVersionEndsAtItsTail(t *testing.T) {
	v, f := testVersion(5, func(uint64) bool { return false })
	old := *v
	old.Tail, old.Seq, old.Revision = 1, 4, 13
	if got := seqAt(&old, old.After(4)); got != 0 {
		t.Errorf("entry %d is after the newest", got)
	}
	if _, e := old.Get(f, NewKey(string(rune('a'+5)))); e != nil {
		t.Error("a key is found that was created later")
	}
	if !old.Replayable(3, old.After(3), 1) || old.Replayable(2, old.After(2), 1) {
		t.Error("one transaction can always be replayed, two only if they are small enough")
	}
}

// TestCanResume: a position is resumed if everything after it is known.
func TestCanResume(t *testing.T) {
	v := &Version{Epoch: "_e", Revision: 20, DeletesCompleteTo: 15, Knowledge: Knowledge{Horizon: 10}, Run: Run{Name: 7, Horizon: 5}}
	for _, c := range []struct {
		at   stream.Position
		want bool
	}{
		{stream.Position{Upserts: 10, AsOf: 10}, true},
		{stream.Position{Upserts: 9, AsOf: 9}, false},
		{stream.Position{Upserts: 9, AsOf: 9, Run: 7}, true},
		{stream.Position{Upserts: 9, AsOf: 9, Run: 8}, false},
		{stream.Position{Upserts: 4, AsOf: 4, Run: 7}, false},
		{stream.Position{Upserts: 12, AsOf: 15}, true},
		{stream.Position{Upserts: 12, AsOf: 16}, false}, // in mid-snapshot, of a replica that knew more
	} {
		if got := v.CanResume(c.at); got != c.want {
			t.Errorf("%+v: %t, want %t", c.at, got, c.want)
		}
	}
}

// TestExact: a reader is not resumed from before a change of which something is in doubt.
func TestExact(t *testing.T) {
	none := func(uint64) bool { return false }
	for name, c := range map[string]struct {
		doubt func(e *Entry) // what entry 5, at revision 14, is
		want  uint64
	}{
		"nothing":                           {func(*Entry) {}, 10},
		"a former value that is gone":       {func(e *Entry) { e.Back = FarBack }, 14},
		"a former value that is there":      {func(e *Entry) { e.Back = 2 }, 10},
		"values that were left out":         {func(e *Entry) { e.Flags |= Conflated }, 14},
		"a delete of what was not seen":     {func(e *Entry) { e.Flags |= IsDelete }, 14},
		"such a delete without a revision":  {func(e *Entry) { e.Flags |= IsDelete | UnnumberedDelete }, 15},
		"a delete of what was there before": {func(e *Entry) { e.Flags |= IsDelete; e.Back = 1 }, 10},
	} {
		v, _ := testVersion(8, none)
		v.Horizon = 10
		_, e := v.Find(5)
		c.doubt(e)
		if got := v.Exact(); got != c.want {
			t.Errorf("%s: exact from %d on, want %d", name, got, c.want)
		}
		v.Horizon = 16
		if got := v.Exact(); got != 16 {
			t.Errorf("%s: exact from %d on, want the horizon, 16", name, got)
		}
	}
}

// TestLack: no reader is resumed that may need a delete that is not there, and gateways
// further down learn of it.
func TestLack(t *testing.T) {
	v, _ := testVersion(8, func(uint64) bool { return false })
	v.OfGeneration = 1
	_, e := v.Find(5)
	for range 2 { // it is the same the second time
		v.Lack(e)
		if v.Horizon != 14 || v.Complete() != 14 || v.Forgotten != 0 {
			t.Errorf("the horizon is %d, all is complete from %d on, forgotten is %d", v.Horizon, v.Complete(), v.Forgotten)
		}
	}
}
