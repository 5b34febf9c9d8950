package nats

import (
	"slices"
	"testing"
)

// bench is a reader of a bucket under the test's control.
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
		bucket: b, sink: sink, begin: b.now, stall: DefaultStallAfter, meter: new(meter), floor: b.now.last, deletesTo: b.now.last,
		checkpoint: newCheckpoint("e"), complete: func() {},
	}}
}

// live returns a reader that has read a bucket with a key a.
func live(t *testing.T) *bench {
	b := newFakeBucket()
	a := b.write("a")
	n := newBench(t, b)
	n.ask()
	n.send(a, 0)
	n.wantCalls("a=1@1", "commit 1")
	return n
}

// resuming returns a reader that resumes at another one's position.
func (n *bench) resuming() *bench {
	next := newBench(n.t, n.bucket)
	r := next.reader
	r.checkpoint, r.old, r.resume, r.at = n.reader.checkpoint, n.reader.checkpoint, true, n.reader.checkpoint.committed
	r.deletesTo = n.sink.deletesCompleteTo()
	return next
}

func (n *bench) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// send delivers a message, with a number of pending ones behind it, and commits if
// possible.
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

// wantCalls requires these calls of the Sink since the last check.
func (n *bench) wantCalls(want ...string) {
	n.t.Helper()
	if got := n.sink.take(); !slices.Equal(got, want) {
		n.t.Errorf("the sink was called with %q, want %q", got, want)
	}
}
