package natssource

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// bench is a reader of a bucket that is under control.
type bench struct {
	t      *testing.T
	bucket *fakeBucket
	sink   *calls
	reader *reader
	number uint64
}

// newBench returns a reader that is about to read a snapshot.
func newBench(t *testing.T, b *fakeBucket) *bench {
	sink := &calls{}
	return &bench{t: t, bucket: b, sink: sink, reader: &reader{
		bucket: b, sink: sink, begin: b.now, stall: DefaultStallAfter, floor: b.now.last,
		known: newKnown("e"), complete: func() {},
	}}
}

// live returns a reader that has read a bucket with a key a.
func live(t *testing.T) *bench {
	b := newFakeBucket()
	a := b.write("a")
	n := newBench(t, b)
	n.ask()
	n.send(a, 0)
	n.told("a=1@1", "commit 1")
	return n
}

// resuming returns a reader that goes on behind what another one had read.
func (n *bench) resuming() *bench {
	next := newBench(n.t, n.bucket)
	r := next.reader
	r.known, r.old, r.resume, r.at = n.reader.known, n.reader.known, true, n.reader.known.committed
	return next
}

func (n *bench) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// send lets a message come, with so many behind it, and commits what can be.
func (n *bench) send(d delivery, pending uint64) {
	n.t.Helper()
	n.must(n.try(d, pending))
	n.must(n.reader.commit(n.t.Context()))
}

func (n *bench) try(d delivery, pending uint64) error {
	n.number++
	d.number, d.pending = n.number, pending
	return n.reader.take(d)
}

func (n *bench) ask() {
	n.t.Helper()
	n.must(n.reader.ask(n.t.Context()))
	n.must(n.reader.commit(n.t.Context()))
}

func (n *bench) poll() {
	n.t.Helper()
	n.must(n.reader.poll(n.t.Context()))
}

// told demands what the Sink was told since.
func (n *bench) told(want ...string) {
	n.t.Helper()
	if got := n.sink.take(); !slices.Equal(got, want) {
		n.t.Errorf("the sink was told %q, want %q", got, want)
	}
}

func TestSnapshotOfNothing(t *testing.T) {
	n := newBench(t, newFakeBucket())
	n.ask()
	n.told("commit 0")
}

// A key that is written while the values before it are read is missing, until its
// new value comes: nothing may be served before.
func TestSnapshotWaitsForWhatWasOvertaken(t *testing.T) {
	b := newFakeBucket()
	b.write("a")
	c := b.write("c")
	n := newBench(t, b)
	n.ask()
	a := b.write("a") // replaces the first before it was sent
	n.send(c, 1)
	n.told("c=2@2")
	n.send(a, 0)
	n.told("a=3@3", "commit 3")
}

// What the counter of the server says is not enough.
func TestSnapshotDoesNotTrustTheCounter(t *testing.T) {
	b := newFakeBucket()
	a, c := b.write("a"), b.write("c")
	n := newBench(t, b)
	n.ask()
	n.send(a, 0) // wrong: c is left
	n.told("a=1@1")
	n.send(c, 7) // wrong: nothing is left; but nothing was left out either
	n.told("c=2@2", "commit 2")
}

// The counter may never say that nothing is left.
func TestSnapshotEndsWithoutTheCounter(t *testing.T) {
	b := newFakeBucket()
	b.write("a")
	c, a := b.write("c"), b.write("a")
	n := newBench(t, b)
	n.ask()
	n.send(c, 9)
	n.send(a, 9) // sequence 1 was left out
	n.told("c=2@2", "a=3@3")
	n.ask()
	n.told("commit 3")
}

// The newest message may have vanished, so that its sequence never comes.
func TestSnapshotEndsWithoutTheLastSequence(t *testing.T) {
	b := newFakeBucket()
	a := b.write("a")
	b.write("gone")
	b.vanish("gone")
	n := newBench(t, b)
	n.ask()
	n.send(a, 0)
	n.told("a=1@1", "commit 2")
}

func TestLiveGapEndsWithoutTheLastSequence(t *testing.T) {
	n := live(t)
	n.bucket.write("a")
	a := n.bucket.write("a")
	n.bucket.write("gone")
	n.bucket.vanish("gone")
	n.send(a, 9)
	n.ask() // the number is still 4
	n.told("a=3@3")
	n.ask() // so that the message is looked for
	n.told("commit 3")
}

func TestSnapshotLeavesDeletedKeysOut(t *testing.T) {
	b := newFakeBucket()
	a := b.write("a")
	d := b.write("b")
	d.kind = deleted
	n := newBench(t, b)
	n.ask()
	n.send(a, 1)
	n.send(d, 0)
	n.told("a=1@1", "commit 2")
	again := b.write("b")
	n.send(again, 0)
	n.told("b=3@3", "commit 3")
}

// A key that is deleted while the snapshot is read was read before.
func TestSnapshotTakesBackWhatIsDeletedMeanwhile(t *testing.T) {
	b := newFakeBucket()
	a, c := b.write("a"), b.write("c")
	n := newBench(t, b)
	n.ask()
	n.send(a, 1)
	d := b.write("a")
	d.kind = deleted
	n.send(c, 1)
	n.send(d, 0)
	n.told("a=1@1", "c=2@2", "commit 2", "-a@3", "commit 3")
}

// Each message right behind the one before is a state that there was.
func TestLiveChangesOneByOne(t *testing.T) {
	n := live(t)
	x, y := n.bucket.write("x"), n.bucket.write("y")
	n.send(x, 1)
	n.send(y, 0)
	n.told("x=2@2", "commit 2", "y=3@3", "commit 3")
}

// Where sequences are missing, messages were replaced by some that are yet to come.
func TestLiveGapIsHeldBack(t *testing.T) {
	n := live(t)
	n.bucket.write("a")
	x, a := n.bucket.write("x"), n.bucket.write("a") // of 2 nothing is left
	n.send(x, 1)
	n.told("x=3@3")
	n.send(a, 0)
	n.told("a=4@4", "commit 4")
}

// The counter may be wrong: the newest message is asked for.
func TestLiveGapEndsWithoutTheCounter(t *testing.T) {
	n := live(t)
	n.bucket.write("a")
	x, a, y := n.bucket.write("x"), n.bucket.write("a"), n.bucket.write("y")
	n.send(x, 5)
	n.ask() // knows of y now
	n.send(a, 5)
	n.told("x=3@3", "a=4@4")
	n.send(y, 5)
	n.told("y=5@5", "commit 5")
}

// What is asked while more is replaced says nothing of that.
func TestGapAfterTheQuestion(t *testing.T) {
	n := live(t)
	n.bucket.write("v")
	n.bucket.vanish("v")
	x := n.bucket.write("x")
	n.send(x, 5)
	n.ask() // nothing is newer than x: nothing is outstanding
	n.told("x=3@3", "commit 3")
	n.bucket.write("x")
	y := n.bucket.write("y")
	n.send(y, 5)
	n.told("y=5@5")
	x = n.bucket.write("x")
	n.send(x, 5)
	n.told("x=6@6")
	n.ask()
	n.told("commit 6")
}

func TestBatchIsOneCommit(t *testing.T) {
	n := live(t)
	x, y, z := n.bucket.write("x"), n.bucket.write("y"), n.bucket.write("z")
	x.part, y.part = true, true
	n.send(x, 0)
	n.send(y, 0)
	n.told("x=2@2", "y=3@3")
	n.send(z, 0)
	n.told("z=4@4", "commit 4")
}

// The end of a batch may be a message that is not kept.
func TestBatchWithoutAnEnd(t *testing.T) {
	n := live(t)
	x := n.bucket.write("x")
	x.part = true
	n.send(x, 0)
	n.told("x=2@2")
	n.ask()
	n.told("commit 2")
}

func TestVanishedKey(t *testing.T) {
	n := live(t)
	n.send(n.bucket.write("x"), 0)
	n.sink.take()
	n.bucket.vanish("a")
	n.poll()
	n.told("-a@0", "commit 2")
	n.poll()
	n.told()
	if n.reader.known.resumes("e", 1) || !n.reader.known.resumes("e", 2) {
		t.Error("who was told of a key may resume behind it, although nothing says that it is gone")
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
	n.told("-x@0", "commit 3")
}

// The marker of a delete that vanishes is not told: the key is gone already.
func TestVanishedMarker(t *testing.T) {
	n := live(t)
	d := n.bucket.write("a")
	d.kind = deleted
	n.send(d, 0)
	n.sink.take()
	n.bucket.vanish("a")
	n.poll()
	n.told("commit 2")
	if len(n.reader.known.keys) != 0 {
		t.Errorf("still known: %v", n.reader.known.keys)
	}
}

// What has been written and not come yet makes the numbers differ.
func TestPollDoesNotMistakeWhatIsOnItsWay(t *testing.T) {
	n := live(t)
	x := n.bucket.write("x")
	n.poll()
	n.told()
	n.send(x, 0)
	n.told("x=2@2", "commit 2")
	if asked := n.bucket.questions(); slices.Contains(asked, "keys") {
		t.Errorf("asked for %q, want no names", asked)
	}
}

// Keys that never came are a reason to begin anew.
func TestPollFindsWhatNeverCame(t *testing.T) {
	n := live(t)
	n.bucket.messages["unknown"] = 1
	n.bucket.now.keys++
	if err := n.reader.poll(t.Context()); !errors.Is(err, stream.ErrUnresumable) {
		t.Errorf("error %v, want ErrUnresumable", err)
	}
}

// Of a narrowed watch others' writes are progress.
func TestPollIsProgress(t *testing.T) {
	n := live(t)
	n.bucket.now.alone = false
	n.bucket.now.last = 9
	n.poll()
	n.told("commit 9")
	n.bucket.now.last = 9
	x := n.bucket.write("x")
	n.send(x, 0)
	n.told("x=10@10", "commit 10")
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
	n.told("commit 1")
	if asked := n.bucket.questions(); slices.Contains(asked, "keys") {
		t.Errorf("asked for %q, want no names", asked)
	}
}

// All that happened meanwhile becomes visible at once, since some of it was
// replaced by what came later.
func TestResumeIsOneCommit(t *testing.T) {
	before := live(t)
	before.bucket.write("x")
	y, x := before.bucket.write("y"), before.bucket.write("x")
	n := before.resuming()
	n.ask()
	n.send(y, 1)
	n.told("y=3@3")
	n.send(x, 0)
	n.told("x=4@4", "commit 4")
}

func TestResumeFindsWhatVanished(t *testing.T) {
	before := live(t)
	before.send(before.bucket.write("b"), 0)
	before.bucket.vanish("a")
	c := before.bucket.write("c") // so that the number of keys is what it was
	n := before.resuming()
	n.ask()
	n.send(c, 0)
	n.told("c=3@3", "-a@0", "commit 3")
}

// Deliveries that cannot be are not taken.
func TestReaderRefuses(t *testing.T) {
	message := func(change func(*delivery)) func(*bench) error {
		return func(n *bench) error {
			d := n.bucket.write("x")
			d.number = 2
			change(&d)
			return n.reader.take(d)
		}
	}
	for name, test := range map[string]struct {
		take func(*bench) error
		want error
		text string
	}{
		"a lost message":   {message(func(d *delivery) { d.number = 3 }), stream.ErrInvalid, "message 3 came after message 1"},
		"a repeated one":   {message(func(d *delivery) { d.number = 1 }), stream.ErrInvalid, "message 1 came after message 1"},
		"one out of order": {message(func(d *delivery) { d.sequence = 1 }), stream.ErrOrder, "sequence 1 came after 1"},
		"a broken one":     {message(func(d *delivery) { *d = invalid("broken") }), stream.ErrInvalid, "broken"},
		"a heartbeat that counts more": {
			func(n *bench) error { return n.reader.take(delivery{kind: heartbeat, number: 2}) },
			stream.ErrInvalid, "2 messages were sent and 1 came",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.take(live(t)); !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %v, want %v: %s", err, test.want, test.text)
			}
		})
	}
	n := live(t)
	n.must(n.reader.take(delivery{kind: heartbeat, number: 1}))
	n.must(n.reader.take(delivery{kind: heartbeat}))
}

// After progress was committed, nothing older may come.
func TestReaderRefusesWhatIsBelowProgress(t *testing.T) {
	n := live(t)
	n.bucket.now.last = 5
	n.poll()
	if err := n.try(delivery{key: "x", sequence: 4, value: []byte("1")}, 0); !errors.Is(err, stream.ErrOrder) {
		t.Errorf("error %v, want ErrOrder", err)
	}
}

// A message that is at a sequence from before and younger than all from before
// belongs to a bucket that was restored, and written to since.
func TestRestoredBucket(t *testing.T) {
	before := live(t)
	before.send(before.bucket.write("b"), 0)
	n := newBench(t, before.bucket)
	n.reader.old = before.reader.known
	same := delivery{key: "a", sequence: 1, time: 1, value: []byte("1")}
	n.must(n.try(same, 1))
	other := delivery{key: "c", sequence: 2, time: 99, value: []byte("1")}
	if err := n.try(other, 0); !errors.Is(err, errRestored) || !errors.Is(err, stream.ErrUnresumable) {
		t.Errorf("error %v, want %v", err, errRestored)
	}
}

// What was known before the snapshot stays known if nothing vanished.
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
		n.reader.old = before.reader.known
		n.ask()
		n.send(delivery{key: "a", sequence: 1, time: 1, value: []byte("1")}, 2)
		if !vanishes {
			n.send(x, 1)
		}
		n.send(y, 0)
		if got := n.reader.known.resumes("e", 1); got == vanishes {
			t.Errorf("vanishes: %v; resumes from before: %v", vanishes, got)
		}
	}
}
