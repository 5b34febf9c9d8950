package storage

import (
	"bytes"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// add appends a resource, or its delete, to a segment.
func add(t *testing.T, f *Format, s *Segment, r stream.Resource, deleted bool) *Entry {
	t.Helper()
	k := NewKey(r.Key)
	size := f.Size(&r, deleted, k.Key)
	if !s.Fits(size) {
		t.Fatalf("a frame of %d bytes does not fit", size)
	}
	e, frame := s.Reserve(size)
	if n := len(f.Append(frame, &r, deleted, k.Key)); n != size {
		t.Fatalf("the frame of %q has %d bytes, and %d were reserved", r.Key, n, size)
	}
	e.Revision, e.Hash, e.Flags, e.KeyLen = r.Revision, k.Hash, k.Flags, uint32(len(k.Text))
	if deleted {
		e.Flags |= IsDelete
	}
	if r.Encoding != "" {
		e.Flags |= ValueBase64
	}
	return e
}

// TestFormatReadsWhatItWrote: the resource of a frame is the one that was written.
func TestFormatReadsWhatItWrote(t *testing.T) {
	f := NewFormat("w")
	s := NewSegment(1, 1<<16, 100)
	for _, key := range []string{"", "a", "a b", "a\nb", "\xff\xfe", `"quoted"`, "é", strings.Repeat("long", 100)} {
		for _, r := range []stream.Resource{
			{Key: key, Revision: 7, Value: []byte(`{"a":1}`)},
			{Key: key, Revision: 1<<64 - 1, Value: []byte(`"AAE="`), Encoding: stream.Base64},
		} {
			e := add(t, f, s, r, false)
			got := f.Event(s, e)
			if got.Type != stream.Upsert || got.Watch != "w" || got.Resource.Key != key || got.Resource.Revision != r.Revision ||
				!bytes.Equal(got.Resource.Value, r.Value) || got.Resource.Encoding != r.Encoding {
				t.Errorf("wrote %+v, read %+v", r, got)
			}
			if !f.KeyEquals(s, e, NewKey(key)) || f.KeyEquals(s, e, NewKey(key+"x")) {
				t.Errorf("key %q is not equal to itself alone", key)
			}
		}
		e := add(t, f, s, stream.Resource{Key: key, Revision: 8}, true)
		if got := f.Event(s, e); got.Type != stream.Delete || got.Resource.Key != key || got.Resource.Revision != 8 || got.Resource.Value != nil {
			t.Errorf("wrote the delete of %q, read %+v", key, got)
		}
	}
}

// TestShownRevision: an unnumbered delete has a place in the log's order, and shows the
// revision that it came with.
func TestShownRevision(t *testing.T) {
	f := NewFormat("w")
	s := NewSegment(1, 1<<10, 2)
	e := add(t, f, s, stream.Resource{Key: "a", Revision: 8}, true)
	e.Flags |= UnnumberedDelete
	e.Revision = 20
	if got := f.ShownRevision(s, e); got != 8 {
		t.Errorf("revision %d is shown, want 8", got)
	}
}

// TestAppendCopy: compaction copies an entry with its frame.
func TestAppendCopy(t *testing.T) {
	f := NewFormat("w")
	from, to := NewSegment(1, 1<<10, 4), NewSegment(2, 1<<10, 4)
	add(t, f, from, stream.Resource{Key: "dropped", Revision: 1, Value: []byte("1")}, false)
	kept := add(t, f, from, stream.Resource{Key: "kept", Revision: 2, Value: []byte("2")}, false)
	to.AppendCopy(from, kept)
	if got := f.Event(to, &to.Entries[0]).Resource; got.Key != "kept" || got.Revision != 2 || string(got.Value) != "2" {
		t.Errorf("the copy is %+v", got)
	}
	if run := from.Run(0, 2); !bytes.Equal(run, append(bytes.Clone(from.Frame(&from.Entries[0])), to.Run(0, 1)...)) {
		t.Errorf("the frames of both entries are %q", run)
	}
}

// TestCopyOfASupersededEntry: the copy is superseded as well, and counted.
func TestCopyOfASupersededEntry(t *testing.T) {
	f := NewFormat("w")
	from, to := NewSegment(1, 1<<10, 4), NewSegment(2, 1<<10, 4)
	old := add(t, f, from, stream.Resource{Key: "old", Revision: 1, Value: []byte("1")}, false)
	live := add(t, f, from, stream.Resource{Key: "live", Revision: 2, Value: []byte("2")}, false)
	old.Superseded.Store(7)
	to.AppendCopy(from, old)
	to.AppendCopy(from, live)
	if to.Entries[0].Superseded.Load() != 7 || to.Entries[1].Superseded.Load() != 0 || to.Dead != int(old.Size) {
		t.Errorf("superseded at %d and %d, %d bytes are counted", to.Entries[0].Superseded.Load(), to.Entries[1].Superseded.Load(), to.Dead)
	}
}

// TestQuarterDead: it is known from which seq on a quarter of a segment is superseded, and
// searched for once.
func TestQuarterDead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewSegment(1, 1<<10, 100)
		n := rapid.IntRange(1, 100).Draw(t, "entries")
		for i := range n {
			e, _ := s.Reserve(rapid.IntRange(1, 10).Draw(t, "size"))
			e.Seq = uint64(i + 1)
		}
		searches := 0
		for mark, head := uint64(n), uint64(n); head < 300; head++ {
			if e := &s.Entries[rapid.IntRange(0, n-1).Draw(t, "superseded")]; e.Superseded.Load() == 0 {
				e.Superseded.Store(head)
				s.Dead += int(e.Size)
			}
			mark = min(head, mark+rapid.Uint64Range(0, 2).Draw(t, "step"))
			is, searched := s.QuarterDead(mark, head)
			if want := s.DeadAt(mark)*4 >= s.Used; is != want {
				t.Fatalf("%d of %d bytes are superseded up to %d: %t", s.DeadAt(mark), s.Used, mark, is)
			}
			if searched {
				searches++
			}
		}
		if searches > 1 {
			t.Errorf("%d searches", searches)
		}
	})
}

// TestVisible: an entry counts until it is superseded.
func TestVisible(t *testing.T) {
	e := &Entry{Seq: 3}
	if !e.Visible(100) {
		t.Error("an entry that nothing superseded does not count")
	}
	e.Superseded.Store(5)
	if !e.Visible(4) || e.Visible(5) {
		t.Error("an entry that was superseded at 5 must count at 4, and not at 5")
	}
}
