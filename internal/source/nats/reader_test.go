package nats

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

func TestSnapshotOfNothing(t *testing.T) {
	n := newBench(t, newFakeBucket())
	n.ask()
	n.wantCalls("commit 0")
}

// A bucket that holds messages, and none of a key, is not in sync.
func TestSnapshotOfForeignSubjects(t *testing.T) {
	b := newFakeBucket()
	b.now.held, b.now.last, b.foreign = true, 3, "$KV.other.a"
	n := newBench(t, b)
	n.must(n.reader.ask(t.Context()))
	err := n.reader.commit(t.Context())
	if err == nil || !strings.Contains(err.Error(), `"$KV.other.a"; want subjects that begin with "$KV.b."`) {
		t.Errorf("got the error %v", err)
	}
	n.wantCalls()
}

// The same holds for messages that come later.
func TestForeignSubjectsThatComeLater(t *testing.T) {
	n := newBench(t, newFakeBucket())
	n.ask()
	n.wantCalls("commit 0")
	n.bucket.now.held, n.bucket.now.last, n.bucket.foreign = true, 3, "$KV.other.a"
	n.bucket.now.alone = false
	if err := n.reader.poll(t.Context()); err == nil || !strings.Contains(err.Error(), "no key is in the bucket") {
		t.Errorf("got the error %v", err)
	}
}

// A key that is written while the values before it are read is missing until its
// new value arrives: nothing may be served before that.
func TestSnapshotWaitsForOverwrittenKeys(t *testing.T) {
	b := newFakeBucket()
	b.write("a")
	c := b.write("c")
	n := newBench(t, b)
	n.ask()
	a := b.write("a") // replaces the first before it was sent
	n.send(c, 1)
	n.wantCalls("c=2@2")
	n.send(a, 0)
	n.wantCalls("a=3@3", "commit 3")
}

// The server's counter alone is not enough.
func TestSnapshotDoesNotTrustTheCounter(t *testing.T) {
	b := newFakeBucket()
	a, c := b.write("a"), b.write("c")
	n := newBench(t, b)
	n.ask()
	n.send(a, 0) // wrong: c is left
	n.wantCalls("a=1@1")
	n.send(c, 7) // wrong: nothing is left; but nothing was left out either
	n.wantCalls("c=2@2", "commit 2")
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
	n.wantCalls("c=2@2", "a=3@3")
	n.ask()
	n.wantCalls("commit 3")
}

// The newest message may have vanished, so that its sequence is never
// delivered.
func TestSnapshotEndsWithoutTheLastSequence(t *testing.T) {
	b := newFakeBucket()
	a := b.write("a")
	b.write("gone")
	b.vanish("gone")
	n := newBench(t, b)
	n.ask()
	n.send(a, 0)
	n.wantCalls("a=1@1", "commit 2")
}

func TestLiveGapEndsWithoutTheLastSequence(t *testing.T) {
	n := live(t)
	n.bucket.write("a")
	a := n.bucket.write("a")
	n.bucket.write("gone")
	n.bucket.vanish("gone")
	n.send(a, 9)
	n.ask() // the number is still 4
	n.wantCalls("a=3@3")
	n.ask() // so that the message is searched for
	n.wantCalls("commit 3")
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
	n.wantCalls("a=1@1", "commit 2")
	again := b.write("b")
	n.send(again, 0)
	n.wantCalls("b=3@3", "commit 3")
}

// A key that is deleted while the snapshot is read was read before.
func TestSnapshotRemovesKeysDeletedMeanwhile(t *testing.T) {
	b := newFakeBucket()
	a, c := b.write("a"), b.write("c")
	n := newBench(t, b)
	n.ask()
	n.send(a, 1)
	d := b.write("a")
	d.kind = deleted
	n.send(c, 1)
	n.send(d, 0)
	n.wantCalls("a=1@1", "c=2@2", "-a@3", "commit 3")
}

// Each message without a gap before it makes a state that existed.
func TestLiveChangesOneByOne(t *testing.T) {
	n := live(t)
	x, y := n.bucket.write("x"), n.bucket.write("y")
	n.send(x, 1)
	n.send(y, 0)
	n.wantCalls("x=2@2", "commit 2", "y=3@3", "commit 3")
}

// Where sequences are missing, messages were replaced by others that are still
// to be delivered.
func TestLiveGapIsHeldBack(t *testing.T) {
	n := live(t)
	n.bucket.write("a")
	x, a := n.bucket.write("x"), n.bucket.write("a") // of 2 nothing is left
	n.send(x, 1)
	n.wantCalls("x=3@3")
	n.send(a, 0)
	n.wantCalls("a=4@4", "commit 4")
}

// The counter may be wrong: the newest message is requested.
func TestLiveGapEndsWithoutTheCounter(t *testing.T) {
	n := live(t)
	n.bucket.write("a")
	x, a, y := n.bucket.write("x"), n.bucket.write("a"), n.bucket.write("y")
	n.send(x, 5)
	n.ask() // knows of y now
	n.send(a, 5)
	n.wantCalls("x=3@3", "a=4@4")
	n.send(y, 5)
	n.wantCalls("y=5@5", "commit 5")
}

// The answer does not cover messages that are replaced after the query.
func TestGapAfterTheQuery(t *testing.T) {
	n := live(t)
	n.bucket.write("v")
	n.bucket.vanish("v")
	x := n.bucket.write("x")
	n.send(x, 5)
	n.ask() // nothing is newer than x: nothing is outstanding
	n.wantCalls("x=3@3", "commit 3")
	n.bucket.write("x")
	y := n.bucket.write("y")
	n.send(y, 5)
	n.wantCalls("y=5@5")
	x = n.bucket.write("x")
	n.send(x, 5)
	n.wantCalls("x=6@6")
	n.ask()
	n.wantCalls("commit 6")
}

func TestBatchIsOneCommit(t *testing.T) {
	n := live(t)
	x, y, z := n.bucket.write("x"), n.bucket.write("y"), n.bucket.write("z")
	x.part, y.part = true, true
	n.send(x, 0)
	n.send(y, 0)
	n.wantCalls("x=2@2", "y=3@3")
	n.send(z, 0)
	n.wantCalls("z=4@4", "commit 4")
}

// The end of a batch may be a message that is not kept.
func TestBatchWithoutAnEnd(t *testing.T) {
	n := live(t)
	x := n.bucket.write("x")
	x.part = true
	n.send(x, 0)
	n.wantCalls("x=2@2")
	n.ask()
	n.wantCalls("commit 2")
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
		"a lost message":   {message(func(d *delivery) { d.number = 3 }), stream.ErrInvalid, "message 3 arrived after message 1"},
		"a repeated one":   {message(func(d *delivery) { d.number = 1 }), stream.ErrInvalid, "message 1 arrived after message 1"},
		"one out of order": {message(func(d *delivery) { d.sequence = 1 }), stream.ErrOrder, "sequence 1 arrived after 1"},
		"a broken one":     {message(func(d *delivery) { *d = invalid("broken") }), stream.ErrInvalid, "broken"},
		"a heartbeat that counts more": {
			func(n *bench) error { return n.reader.take(delivery{kind: heartbeat, number: 2}) },
			stream.ErrInvalid, "2 messages were sent and 1 arrived",
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

// After progress was committed, nothing older may arrive.
func TestReaderRefusesMessagesBelowProgress(t *testing.T) {
	n := live(t)
	n.bucket.now.last = 5
	n.poll()
	if err := n.try(delivery{key: "x", sequence: 4, value: []byte("1")}, 0); !errors.Is(err, stream.ErrOrder) {
		t.Errorf("error %v, want ErrOrder", err)
	}
}

// Messages have times: those of changes are passed on, and also those of changes that were
// missed, but not those of a snapshot.
func TestTimesOfMessages(t *testing.T) {
	n := live(t)
	if len(n.sink.made) != 0 {
		t.Errorf("times of a snapshot: %v", n.sink.made)
	}
	n.send(n.bucket.write("a"), 0)
	again := n.resuming()
	again.send(n.bucket.write("b"), 0)
	for i, got := range [][]time.Time{n.sink.made, again.sink.made} {
		if want := time.Unix(0, int64(i+2)); len(got) != 1 || !got[0].Equal(want) {
			t.Errorf("times %v, want %v", got, want)
		}
	}
}
