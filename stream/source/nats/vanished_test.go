package nats

import (
	"context"
	"testing"
)

// sweptTo requires what was reported of vanished keys with the last commit.
func (n *bench) sweptTo(want uint64) {
	n.t.Helper()
	if got := n.sink.sweptTo(); got != want {
		n.t.Errorf("swept to %d, want %d", got, want)
	}
}

// What vanished while a snapshot was read is not in it, so the snapshot is as
// new as what the bucket had stored by then. What vanished before the consumer
// was made is known.
func TestSnapshotIsAsNewAsWhatVanishedMeanwhile(t *testing.T) {
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
	n.told("a=1@1")
	n.send(x, 0)
	n.told("x=3@3", "commit 4")
	n.sweptTo(2)
	n.poll()
	n.told("commit 4")
	n.sweptTo(4)
}

// Each poll reports how far vanished keys are known, even if there were none, and
// reports nothing if that is known already.
func TestPollSaysHowFarItLooked(t *testing.T) {
	n := live(t)
	n.sweptTo(1)
	n.send(n.bucket.write("x"), 0)
	n.send(n.bucket.write("y"), 0)
	n.sink.take()
	n.sweptTo(1)
	n.poll()
	n.told("commit 3")
	n.sweptTo(3)
	n.poll()
	n.told()
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
// complete: a reader at another replica may have seen everything that the bucket
// had by then.
func TestVanishedKeyIsAsNewAsTheNames(t *testing.T) {
	n := live(t)
	n.send(n.bucket.write("j"), 0)
	n.sink.take()
	n.bucket.vanish("j")
	var x delivery
	n.reader.bucket = crowdedBucket{n.bucket, func() { x = n.bucket.write("x") }}
	n.poll()
	n.told()
	n.reader.bucket = n.bucket
	n.send(x, 0)
	n.told("x=3@3", "-j@0", "commit 3")
	n.sweptTo(2)
}

// A key that comes back before it was deleted is not deleted.
func TestVanishedKeyComesBack(t *testing.T) {
	n := live(t)
	n.send(n.bucket.write("j"), 0)
	n.sink.take()
	n.bucket.vanish("j")
	var j delivery
	n.reader.bucket = crowdedBucket{n.bucket, func() { j = n.bucket.write("j") }}
	n.poll()
	n.reader.bucket = n.bucket
	n.send(j, 0)
	n.told("j=3@3", "commit 3")
	n.sweptTo(2)
}

// The message that was waited for vanishes as well.
func TestVanishedKeyIsNotForgotten(t *testing.T) {
	n := live(t)
	n.send(n.bucket.write("j"), 0)
	n.sink.take()
	n.bucket.vanish("j")
	n.reader.bucket = crowdedBucket{n.bucket, func() { n.bucket.write("x") }}
	n.poll()
	n.reader.bucket = n.bucket
	n.bucket.vanish("x")
	n.told()
	n.poll()
	n.told("-j@0", "commit 3")
	n.sweptTo(3)
}

// A returning reader reports at once what it knew, and what it finds out.
func TestResumeSaysHowFarItLooked(t *testing.T) {
	before := live(t)
	before.send(before.bucket.write("b"), 0)
	before.sweptTo(1)
	n := before.resuming()
	n.must(n.reader.ask(t.Context()))
	n.bucket.vanish("a")
	c := n.bucket.write("c") // not sent yet
	n.must(n.reader.commit(t.Context()))
	n.told("horizon 4", "commit 2", "status in_sync")
	n.sweptTo(1)
	n.send(c, 0)
	n.told("c=3@3", "-a@0", "commit 3")
	n.sweptTo(3)
	again := n.resuming()
	again.ask()
	again.told("commit 3", "status in_sync")
	again.sweptTo(3)
}
