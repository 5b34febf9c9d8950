package nats

import (
	"errors"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

func TestVanishedKey(t *testing.T) {
	n := live(t)
	n.send(n.bucket.write("x"), 0)
	n.sink.take()
	n.bucket.vanish("a")
	n.poll()
	n.wantCalls("-a@0", "commit 2")
	n.poll()
	n.wantCalls()
	if n.reader.checkpoint.resumes("e", 1) || !n.reader.checkpoint.resumes("e", 2) {
		t.Error("a reader that knows a key may resume behind it, although no message reports that it is gone")
	}
}

// Another replica may have passed on a value of a vanished key that did not arrive here,
// unless the bucket forgets keys: then no other one has the epoch.
func TestVanishedKeyMayLackValues(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		n := live(t)
		n.bucket.now.forgets = forgets
		n.bucket.write("a")
		n.bucket.vanish("a")
		n.poll()
		if n.sink.conflated == forgets {
			t.Errorf("the bucket forgets keys: %t; values may be missing: %t", forgets, n.sink.conflated)
		}
	}
}

// The newest key vanishes: its sequence is never reached again.
func TestVanishedNewestKey(t *testing.T) {
	n := live(t)
	n.send(n.bucket.write("x"), 0)
	n.bucket.write("y")
	n.bucket.vanish("y")
	n.bucket.vanish("x")
	n.sink.take()
	n.poll()
	n.wantCalls("-x@0", "commit 3")
}

// A vanishing marker of a delete is not reported: the key is gone already.
func TestVanishedMarker(t *testing.T) {
	n := live(t)
	d := n.bucket.write("a")
	d.kind = deleted
	n.send(d, 0)
	n.sink.take()
	n.bucket.vanish("a")
	n.poll()
	n.wantCalls("commit 2")
	if len(n.reader.checkpoint.keys) != 0 {
		t.Errorf("still known: %v", n.reader.checkpoint.keys)
	}
}

// Messages that are written but not yet delivered make the numbers differ.
func TestPollIgnoresUndeliveredMessages(t *testing.T) {
	n := live(t)
	x := n.bucket.write("x")
	n.poll()
	n.wantCalls()
	n.send(x, 0)
	n.wantCalls("x=2@2", "commit 2")
	if asked := n.bucket.queries(); slices.Contains(asked, "keys") {
		t.Errorf("asked for %q, want no names", asked)
	}
}

// Keys that were never delivered are a reason to start over.
func TestPollFindsUndeliveredKeys(t *testing.T) {
	n := live(t)
	n.bucket.messages["unknown"] = 1
	n.bucket.now.keys++
	if err := n.reader.poll(t.Context()); !errors.Is(err, stream.ErrUnresumable) {
		t.Errorf("error %v, want ErrUnresumable", err)
	}
}

// In a narrowed watch, writes to other keys are progress.
func TestPollIsProgress(t *testing.T) {
	n := live(t)
	n.bucket.now.alone = false
	n.bucket.now.last = 9
	n.poll()
	n.wantCalls("commit 9")
	n.bucket.now.last = 9
	x := n.bucket.write("x")
	n.send(x, 0)
	n.wantCalls("x=10@10", "commit 10")
}

func TestPollFindsAnotherBucket(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fakeBucket)
		want   error
	}{
		"made again": {func(b *fakeBucket) { b.now.created = b.now.created.Add(1) }, stream.ErrUnresumable},
		"restored":   {func(b *fakeBucket) { b.now.last = 0 }, errRestored},
		"no answer":  {func(b *fakeBucket) { b.err = stream.ErrStalled }, stream.ErrStalled},
	} {
		t.Run(name, func(t *testing.T) {
			n := live(t)
			test.change(n.bucket)
			if err := n.reader.poll(t.Context()); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

func TestResumeOfNothingNew(t *testing.T) {
	n := live(t).resuming()
	n.ask()
	n.wantCalls("commit 1", "status in_sync")
	if asked := n.bucket.queries(); slices.Contains(asked, "keys") {
		t.Errorf("asked for %q, want no names", asked)
	}
}

// All changes since become visible at once, since some of them were replaced by
// later ones.
func TestResumeIsOneCommit(t *testing.T) {
	before := live(t)
	before.bucket.write("x")
	y, x := before.bucket.write("y"), before.bucket.write("x")
	n := before.resuming()
	n.ask()
	n.send(y, 1)
	n.wantCalls("y=3@3")
	n.send(x, 0)
	n.wantCalls("x=4@4", "horizon 5", "commit 4", "status in_sync") // message 2 may have been an overwritten x
}

// A key that was written and vanished meanwhile was never seen here.
func TestResumeReportsMissedKeys(t *testing.T) {
	before := live(t)
	before.bucket.write("k")
	before.bucket.vanish("k")
	n := before.resuming()
	n.ask()
	n.wantCalls("horizon 3", "commit 2", "status in_sync")
	x := n.bucket.write("x")
	n.send(x, 0)
	n.wantCalls("x=3@3", "commit 3")
	forgetful := n.resuming()
	forgetful.bucket.now.forgets = true // all positions are of this process
	forgetful.bucket.write("k")
	forgetful.bucket.vanish("k")
	forgetful.ask()
	forgetful.wantCalls("commit 3", "status in_sync")
}

func TestResumeFindsVanishedKeys(t *testing.T) {
	before := live(t)
	before.send(before.bucket.write("b"), 0)
	before.bucket.vanish("a")
	c := before.bucket.write("c") // so that the number of keys is unchanged
	n := before.resuming()
	n.ask()
	n.send(c, 0)
	n.wantCalls("c=3@3", "-a@0", "commit 3", "status in_sync")
}

// Messages that arrive while the reader resumes must not hide that a key
// vanished.
func TestResumeIsNotFooledByTheNumber(t *testing.T) {
	before := live(t)
	before.send(before.bucket.write("b"), 0)
	n := before.resuming()
	n.must(n.reader.ask(t.Context()))
	n.bucket.vanish("a")
	c := n.bucket.write("c") // not sent yet
	n.must(n.reader.commit(t.Context()))
	n.wantCalls("horizon 4", "commit 2", "status in_sync")
	n.send(c, 0)
	n.wantCalls("c=3@3", "-a@0", "commit 3")
}

// A message with a known sequence that is younger than all earlier ones
// belongs to a bucket that was restored, and written to since.
func TestRestoredBucket(t *testing.T) {
	before := live(t)
	before.send(before.bucket.write("b"), 0)
	n := newBench(t, before.bucket)
	n.reader.old = before.reader.checkpoint
	same := delivery{key: "a", sequence: 1, time: 1, value: []byte("1")}
	n.must(n.try(same, 1))
	other := delivery{key: "c", sequence: 2, time: 99, value: []byte("1")}
	if err := n.try(other, 0); !errors.Is(err, errRestored) || !errors.Is(err, stream.ErrUnresumable) {
		t.Errorf("error %v, want %v", err, errRestored)
	}
}

// Positions from before the snapshot remain valid if nothing vanished.
func TestPositionsFromBeforeASnapshot(t *testing.T) {
	for _, vanishes := range []bool{false, true} {
		before := live(t)
		b := before.bucket
		x := b.write("x")
		before.send(x, 0)
		y := b.write("y")
		if vanishes {
			b.vanish("x")
		}
		n := newBench(t, b)
		n.reader.old = before.reader.checkpoint
		n.ask()
		n.send(delivery{key: "a", sequence: 1, time: 1, value: []byte("1")}, 2)
		if !vanishes {
			n.send(x, 1)
		}
		n.send(y, 0)
		if got := n.reader.checkpoint.resumes("e", 1); got == vanishes {
			t.Errorf("vanishes: %v; resumes from before: %v", vanishes, got)
		}
	}
}
