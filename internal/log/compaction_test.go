package log

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/storage"
	"pgregory.net/rapid"
)

// written is what a test knows of an entry that it committed.
type written struct {
	key      string
	revision uint64
	deleted  bool
	before   uint64 // seq of the previous entry of the key; 0: there was none
}

// chronicle commits to a log, and remembers everything.
type chronicle struct {
	l        *Writer
	revision uint64
	entries  []written // by seq, from 1 on
	newest   map[string]uint64
	copied   int64 // bytes that compaction wrote again
	dropped  int64 // bytes that it dropped
	mark     uint64
}

func newChronicle(t failer, h Retention, a *memory.Account) *chronicle {
	c := &chronicle{l: NewWriter(Config{Watch: "w", History: h, Account: a}), revision: 1, newest: map[string]uint64{}}
	if _, err := c.l.Replace("e", nil, 1); err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// commit commits changes at the next revisions. The work of compaction is bounded.
func (c *chronicle) commit(t failer, changes ...Change) {
	t.Helper()
	used, added := c.l.used, int64(0)
	for i := range changes {
		c.revision++
		changes[i].Revision = c.revision
		key := changes[i].Key
		c.entries = append(c.entries, written{key, c.revision, changes[i].Deleted, c.newest[key]})
		c.newest[key] = uint64(len(c.entries))
		added += int64(len(changes[i].Key) + len(changes[i].Value) + 100)
	}
	if r, err := c.l.Commit(changes, c.revision); err != nil || r.Duplicates > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	v, copied := c.l.head.Load(), int64(0)
	for i, s := range v.Segments {
		if s.Born == v.Number && v.First[i]+uint64(len(changes)) <= v.Seq {
			copied += int64(s.Used)
		}
	}
	if most := (1 + added/(sweepBytes/4)) * (sweepBytes + 2*int64(storage.SegmentSize)); copied > most {
		t.Fatalf("a commit of %d bytes writes %d bytes again", added, copied)
	}
	c.copied += copied
	c.dropped += max(0, used+added-c.l.used)
	if c.mark = v.Seq; c.l.recent.Bytes() > 0 {
		c.mark = c.l.recent.Mark(v.Seq)
		c.checkPrevious(t, c.mark+1)
	}
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// check compares the counters of the log with its entries, and these with what was
// committed.
func (c *chronicle) check(t failer) {
	t.Helper()
	v, used, dead, found := c.l.head.Load(), int64(0), int64(0), uint64(0)
	for i, s := range v.Segments {
		superseded := 0
		entries := v.Entries(i)
		for j := range entries {
			e := &entries[j]
			used += int64(e.Size)
			if !e.Visible(v.Seq) {
				superseded += int(e.Size)
			}
			if e.Seq > v.Intact {
				found++
			}
			if w := c.entries[e.Seq-1]; w.revision != e.Revision || w.key != c.l.framing.Key(s, e) || w.deleted != e.Is(storage.IsDelete) {
				t.Fatalf("entry %d is of %s at %d, want %+v", e.Seq, c.l.framing.Key(s, e), e.Revision, w)
			}
		}
		if dead += int64(superseded); s.Dead != superseded {
			t.Fatalf("segment %d: %d bytes are counted as superseded, %d are", i, s.Dead, superseded)
		}
	}
	if used != c.l.used || dead != c.l.dead {
		t.Fatalf("%d bytes, %d superseded; counted %d and %d", used, dead, c.l.used, c.l.dead)
	}
	if found != v.Seq-v.Intact {
		t.Fatalf("%d of the %d entries after Intact are there", found, v.Seq-v.Intact)
	}
	for seq := c.mark + 1; seq <= v.Seq; seq++ {
		c.checkPrevious(t, seq)
	}
	c.checkState(t, v.Readable+(v.Seq-v.Readable)/2)
	c.checkState(t, v.Readable)
}

// checkPrevious: the previous entry of a key that changed after the mark is known.
func (c *chronicle) checkPrevious(t failer, seq uint64) {
	t.Helper()
	v, before := c.l.head.Load(), c.entries[seq-1].before
	_, e := v.Find(seq)
	if before != 0 && before <= v.Forgotten || e == nil && seq <= v.Forgotten {
		return // it may be a forgotten delete
	}
	if e == nil {
		t.Fatalf("entry %d is gone, everything superseded after %d is kept", seq, c.mark)
	}
	if _, previous, known := v.Before(e); !known || before != 0 && (previous == nil || previous.Seq != before) {
		t.Fatalf("entry %d: the previous one, %d, is %v; everything superseded after %d is kept", seq, before, previous, c.mark)
	}
}

// keptOutside is how many bytes that were superseded after the mark are not in the tail.
func (c *chronicle) keptOutside() (bytes int64) {
	for _, s := range c.l.next.Segments[:c.l.compactable()] {
		bytes += int64(s.Dead - s.DeadAt(c.mark))
	}
	return bytes
}

// checkState: the state as of a readable seq is there.
func (c *chronicle) checkState(t failer, seq uint64) {
	t.Helper()
	v, want := c.l.head.Load(), map[string]uint64{}
	for _, w := range c.entries[:seq] {
		if delete(want, w.key); !w.deleted {
			want[w.key] = w.revision
		}
	}
	v.Each(seq, func(s *storage.Segment, e *storage.Entry) bool {
		key := c.l.framing.Key(s, e)
		if want[key] != e.Revision {
			t.Fatalf("%s is at %d as of %d, want %d", key, e.Revision, seq, want[key])
		}
		delete(want, key)
		return true
	})
	if len(want) > 0 {
		t.Fatalf("as of %d, %d resources are missing; states from %d on are readable", seq, len(want), v.Readable)
	}
}

// allowed is how many bytes compaction leaves superseded: the tail that it leaves alone is up
// to two segments larger than it should be.
func (c *chronicle) allowed(largest int) int64 {
	return (c.l.used-c.l.dead)*2/5 + c.l.tailBytes() + 2*int64(max(storage.SegmentSize, largest))
}

// TestCompactionProperty: after any history, few small commits suffice to have no more
// superseded than promised, whatever is kept of it. What is kept is complete. What
// compaction writes is in proportion to what it drops.
func TestCompactionProperty(t *testing.T) {
	kept, dropped := int64(0), int64(0)
	rapid.Check(t, func(t *rapid.T) {
		var a *memory.Account
		if rapid.Bool().Draw(t, "ceiling") {
			a = memory.NewAccount(64*mega, nil)
		}
		h := Retention{
			MaxDeletes: rapid.SampledFrom([]int{0, 5, 500}).Draw(t, "deletes"),
			MaxBytes:   rapid.SampledFrom([]int64{0, 0, 1, 20_000, 300_000}).Draw(t, "bytes"),
		}
		c := newChronicle(t, h, a)
		live := map[string]bool{}
		change := func(k, size int, deleted bool) Change {
			ch := large(fmt.Sprint("k", k), 0, size)
			if ch.Deleted = deleted && live[ch.Key]; ch.Deleted {
				ch.Value = nil
			}
			live[ch.Key] = !ch.Deleted
			return ch
		}
		sizes := rapid.SampledFrom([][]int{{50}, {400}, {5000}, {100, 100, 100, 20_000}, {90_000, 200}}).Draw(t, "sizes")
		keys := min(10_000, rapid.SampledFrom([]int{1, 100_000, mega, 4 * mega}).Draw(t, "live")/(sizes[len(sizes)-1]+sizes[0])+1)
		seed := rapid.Uint64().Draw(t, "seed")
		random := func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		for range rapid.IntRange(1, 4).Draw(t, "phases") {
			// Some keys in a row change, at random or one after the other.
			first, span, step := random(keys), 1+random(keys), 0
			inOrder, deletes := rapid.Bool().Draw(t, "in order"), rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "one delete in")
			atOnce := min(span, rapid.SampledFrom([]int{1, 1, 20, 2000}).Draw(t, "at once"))
			for left := rapid.SampledFrom([]int{1, 100_000, mega, 4 * mega}).Draw(t, "bytes"); left > 0; {
				if !inOrder {
					step = random(span)
				}
				changes := make([]Change, atOnce)
				for i := range changes {
					k := (first + (step+i)%span) % keys
					changes[i] = change(k, sizes[k%len(sizes)], random(deletes) == 0)
					left -= len(changes[i].Value) + 100
				}
				c.commit(t, changes...)
				step += atOnce
			}
		}
		c.check(t)
		rounds := 0
		for ; c.l.dead > c.allowed(100_000); rounds++ {
			if c.commit(t, change(keys, 10, false)); rounds > 100 {
				t.Fatalf("%d bytes are superseded after %d more commits, want at most %d of %d", c.l.dead, rounds, c.allowed(100_000), c.l.used)
			}
		}
		c.check(t)
		kept, dropped = max(kept, c.keptOutside()), max(dropped, c.dropped)
		if c.copied > 4*c.dropped+mega {
			t.Fatalf("%d bytes are written again to drop %d", c.copied, c.dropped)
		}
	})
	if !testing.Short() && (kept < 100_000 || dropped < mega) { // few histories may well show nothing
		t.Errorf("%d bytes are kept at most, and %d dropped: the test shows nothing", kept, dropped)
	}
}

// TestRecentlySupersededIsKept: of a log in which all keys change at random, a twentieth
// of the live bytes is kept of what they were before.
func TestRecentlySupersededIsKept(t *testing.T) {
	const keys = 20_000
	c := newChronicle(t, Retention{}, nil)
	seed := uint64(1)
	for i := range 4 * keys {
		seed = seed*6364136223846793005 + 1442695040888963407
		k := i
		if i >= keys {
			k = int(seed>>33) % keys
		}
		c.commit(t, large(fmt.Sprint("k", k), 0, 1000))
	}
	c.check(t)
	live := c.l.used - c.l.dead
	if n, tail := c.keptOutside(), int64(storage.ReplaySize); n < live/20+tail/2 || n > live/20+tail {
		t.Errorf("%d bytes are kept of a log with %d", n, live)
	}
	if c.l.dead > c.allowed(0) {
		t.Errorf("%d bytes are superseded, want %d at most", c.l.dead, c.allowed(0))
	}
}

// TestRareChangesAreKept: the previous value of a key that seldom changes is kept, however
// often others change.
func TestRareChangesAreKept(t *testing.T) {
	c := newChronicle(t, Retention{}, nil)
	for i := range 100 {
		c.commit(t, large(fmt.Sprint("k", i), 0, 1000))
	}
	for i := range 20_000 {
		if i%500 == 0 {
			c.commit(t, large(fmt.Sprint("k", i/500), 0, 1000))
		}
		c.commit(t, large("often", 0, 1000))
	}
	c.check(t)
	if n := c.l.next.Seq - c.mark; n < uint64(storage.ReplaySize)/2/1100 {
		t.Errorf("what was superseded in the last %d changes is kept", n)
	}
}

// TestNothingIsRewrittenInVain: if all keys change one after the other, segments are
// superseded as a whole. They are dropped later, and not rewritten until then.
func TestNothingIsRewrittenInVain(t *testing.T) {
	c := newChronicle(t, Retention{}, nil)
	for i := range 60_000 {
		c.commit(t, large(fmt.Sprint("k", i%15_000), 0, 1000))
	}
	c.check(t)
	if c.dropped < 20*mega || c.copied > c.dropped/10 {
		t.Errorf("%d bytes are written again to drop %d", c.copied, c.dropped)
	}
	recent := 0
	for _, s := range c.l.next.Segments[:c.l.compactable()] {
		if s.Dead*4 >= s.Used && s.DeadAt(c.mark)*4 < s.Used {
			recent++
			if pass := (&compaction{mark: c.mark}); pass.worth(c.l, s) {
				t.Errorf("a segment is rewritten of which %d of %d bytes can be dropped", s.DeadAt(c.mark), s.Used)
			}
		}
	}
	if recent == 0 {
		t.Error("no segment was superseded recently: the test shows nothing")
	}
}

// TestKeptWithinTheHistory: what is superseded is kept for no longer than deletes, and
// takes no more than they leave.
func TestKeptWithinTheHistory(t *testing.T) {
	churn := func(c *chronicle, changes int) {
		for i := range changes {
			c.commit(t, large(fmt.Sprint("k", i%20_000), 0, 1000))
		}
		c.check(t)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newChronicle(t, Retention{MaxAge: time.Hour}, nil)
		churn(c, 60_000)
		before := c.l.next.Seq
		if c.mark >= before-500 {
			t.Errorf("the last %d of %d changes are kept", before-c.mark, before)
		}
		time.Sleep(time.Hour + time.Second)
		churn(c, 500)
		if c.mark < before {
			t.Errorf("what was superseded after %d is kept, %d was an hour ago", c.mark, before)
		}
		mustReplace(t, c.l, "f", c.revision)
		if n := c.l.recent.Bytes(); n != 0 {
			t.Errorf("%d bytes of another generation are kept", n)
		}
	})
	c := newChronicle(t, Retention{MaxBytes: 100_000}, nil)
	churn(c, 60_000)
	c.mark = c.l.mark(c.l.compactable())
	if n := c.keptOutside(); n > 100_000 {
		t.Errorf("%d bytes are kept", n)
	}
}
