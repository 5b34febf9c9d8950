package nats

import (
	"context"
	"testing"
)

// deletesCompleteTo requires how far deletes are complete as of the last commit.
func (n *bench) deletesCompleteTo(want uint64) {
	n.t.Helper()
	if got := n.sink.deletesCompleteTo(); got != want {
		n.t.Errorf("deletes are complete to %d, want %d", got, want)
	}
}

// Keys that vanished while a snapshot was read are not in it, so the snapshot
// is as new as the messages that the bucket had stored by then. Keys that
// vanished before the consumer was made are known.
func TestSnapshotIsAsNewAsItsVanishedKeys(t *testing.T) {
	b := newFakeBucket()
	a := b.write("a")
	b.write("k")
	n := newBench(t, b)
	n.ask()
	x := b.write("x")
	b.write("y")
	b.vanish("k") // before it was sent
	b.vanish("y") // whose sequence is the last
	n.send(a, 1)
	n.wantCalls("a=1@1")
	n.send(x, 0)
	n.wantCalls("x=3@3", "commit 4")
	n.deletesCompleteTo(2)
	n.poll()
	n.wantCalls("commit 4")
	n.deletesCompleteTo(4)
}

// Each poll reports how far deletes are complete, even if no keys vanished, unless it is
// unchanged.
func TestPollReportsDeletesCompleteTo(t *testing.T) {
	n := live(t)
	n.deletesCompleteTo(1)
	n.send(n.bucket.write("x"), 0)
	n.send(n.bucket.write("y"), 0)
	n.sink.take()
	n.deletesCompleteTo(1)
	n.poll()
	n.wantCalls("commit 3")
	n.deletesCompleteTo(3)
	n.poll()
	n.wantCalls()
}

// crowdedBucket stores another message while it names the keys.
type crowdedBucket struct {
	*fakeBucket
	comes func()
}

func (b crowdedBucket) keys(ctx context.Context, filter string) (state, map[string]uint64, error) {
	now, present, err := b.fakeBucket.keys(ctx, filter)
	b.comes()
	return now, present, err
}

// A key that is not named may have vanished when the list of names was nearly
// complete: a reader at another replica may have seen all messages of the bucket
// by then.
func TestVanishedKeyIsAsNewAsTheNames(t *testing.T) {
	n := live(t)
	n.send(n.bucket.write("j"), 0)
	n.sink.take()
	n.bucket.vanish("j")
	var x delivery
	n.reader.bucket = crowdedBucket{n.bucket, func() { x = n.bucket.write("x") }}
	n.poll()
	n.wantCalls()
	n.reader.bucket = n.bucket
	n.send(x, 0)
	n.wantCalls("x=3@3", "-j@0", "commit 3")
	n.deletesCompleteTo(2)
}

// A key that is written again before its delete is not deleted.
func TestVanishedKeyIsWrittenAgain(t *testing.T) {
	n := live(t)
	n.send(n.bucket.write("j"), 0)
	n.sink.take()
	n.bucket.vanish("j")
	var j delivery
	n.reader.bucket = crowdedBucket{n.bucket, func() { j = n.bucket.write("j") }}
	n.poll()
	n.reader.bucket = n.bucket
	n.send(j, 0)
	n.wantCalls("j=3@3", "commit 3")
	n.deletesCompleteTo(2)
}

// The awaited message vanishes as well.
func TestVanishedKeyIsNotForgotten(t *testing.T) {
	n := live(t)
	n.send(n.bucket.write("j"), 0)
	n.sink.take()
	n.bucket.vanish("j")
	n.reader.bucket = crowdedBucket{n.bucket, func() { n.bucket.write("x") }}
	n.poll()
	n.reader.bucket = n.bucket
	n.bucket.vanish("x")
	n.wantCalls()
	n.poll()
	n.wantCalls("-j@0", "commit 3")
	n.deletesCompleteTo(3)
}

// A resumed reader reports how far it knows deletes to be complete at once, and then the new
// one.
func TestResumeReportsDeletesCompleteTo(t *testing.T) {
	before := live(t)
	before.send(before.bucket.write("b"), 0)
	before.deletesCompleteTo(1)
	n := before.resuming()
	n.must(n.reader.ask(t.Context()))
	n.bucket.vanish("a")
	c := n.bucket.write("c") // not sent yet
	n.must(n.reader.commit(t.Context()))
	n.wantCalls("horizon 4", "commit 2", "status in_sync")
	n.deletesCompleteTo(1)
	n.send(c, 0)
	n.wantCalls("c=3@3", "-a@0", "commit 3")
	n.deletesCompleteTo(2) // c was on its way when the names of all keys were requested
	again := n.resuming()
	again.ask()
	again.wantCalls("commit 3", "status in_sync")
	again.deletesCompleteTo(3)
}

// A resumed reader looks for vanished keys while messages are on their way to it. One of them is
// of a key that vanished since: its delete has not been passed on, so the reader does not say so.
func TestResumeIsNotCompleteBeyondWhatArrived(t *testing.T) {
	before := live(t)
	before.send(before.bucket.write("b"), 0)
	n := before.resuming()
	n.must(n.reader.ask(t.Context()))
	a := n.bucket.write("a")
	n.bucket.vanish("a")
	b := n.bucket.write("b")
	n.must(n.reader.commit(t.Context()))
	n.send(a, 1)
	n.send(b, 0)
	n.wantCalls("horizon 5", "commit 2", "status in_sync", "a=3@3", "commit 3", "b=4@4", "commit 4")
	n.deletesCompleteTo(2)
	n.poll()
	n.wantCalls("-a@0", "commit 4")
	n.deletesCompleteTo(4)
}
