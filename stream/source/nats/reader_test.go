package nats

import (
	"errors"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

func TestSnapshotOfNothing(t *testing.T) {
	n := newBench(t, newFakeBucket())
	n.ask()
	n.told("commit 0")
}

// A key that is written while the values before it are read is missing until its
// new value comes: nothing may be served before that.
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

// The server's counter alone is not enough.
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

// The counter may never reach zero.
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
	n.ask() // so that the message is searched for
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
	n.told("a=1@1", "c=2@2", "-a@3", "commit 3")
}

// Each message right behind the one before is a state that existed.
func TestLiveChangesOneByOne(t *testing.T) {
	n := live(t)
	x, y := n.bucket.write("x"), n.bucket.write("y")
	n.send(x, 1)
	n.send(y, 0)
	n.told("x=2@2", "commit 2", "y=3@3", "commit 3")
}

// Where sequences are missing, messages were replaced by others that are yet to
// come.
func TestLiveGapIsHeldBack(t *testing.T) {
	n := live(t)
	n.bucket.write("a")
	x, a := n.bucket.write("x"), n.bucket.write("a") // of 2 nothing is left
	n.send(x, 1)
	n.told("x=3@3")
	n.send(a, 0)
	n.told("a=4@4", "commit 4")
}

// The counter may be wrong: the newest message is requested.
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

// The answer says nothing about messages that are replaced after the question.
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

// Impossible deliveries are rejected.
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
