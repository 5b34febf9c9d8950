package session

import (
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
)

// Encoder writes what a stream says in the form of its transport.
type Encoder interface {
	WriteHello(c *Session)
	// WriteBatch writes the batch of the session. Its last event carries the id, if there is one.
	WriteBatch(c *Session, id []byte)
	WriteHeartbeat()
	WriteGoodbye(c *Session, reason stream.GoodbyeReason)
}

// Text is the encoder of SSE and NDJSON.
//
// Owned by one pump.
type Text struct {
	// Static after construction.
	format frame.Format
	out    wire.Outlet

	Zipper *zipper // nil: the bytes are sent as they are, or compressed by the outlet
}

// NewText returns the encoder of a stream whose text so far has the given sum.
func NewText(c *Session, out wire.Outlet, said wire.Sum) Text {
	t := UncompressedText(c, out)
	if c.Coding != wire.Identity {
		t.Zipper = &zipper{coding: c.Coding, pieces: c.Deps.Pieces, metrics: c.Deps.Metrics, Sum: said}
	}
	return t
}

// UncompressedText returns an encoder that leaves it to the outlet to compress the bytes.
func UncompressedText(c *Session, out wire.Outlet) Text {
	return Text{format: c.Format, out: out}
}

// WriteHello implements Encoder.
func (t *Text) WriteHello(c *Session) {
	hellos := make([]frame.HelloWatch, 0, len(c.watches))
	for _, w := range c.watches {
		hellos = append(hellos, frame.HelloWatch{Watch: w.Name, Resume: w.resume != nil})
	}
	if t.Zipper != nil {
		t.Zipper.begin(t.out)
	}
	data := frame.AppendHello(nil, c.Deps.Instance, c.Authorization.ID(), c.Deps.Heartbeat, hellos)
	t.write(t.format.Append(t.format.AppendRetry(nil, c.Retry), stream.Hello, data, nil))
}

// WriteBatch implements Encoder.
func (t *Text) WriteBatch(c *Session, id []byte) {
	c.slices = c.Batch.Append(c.slices[:0], t.format, id)
	if t.Zipper != nil {
		t.Zipper.batch(&c.Batch, c.slices, t.out)
	} else {
		for _, s := range c.slices {
			t.out.Write(s)
		}
	}
	clear(c.slices) // they alias the log: a waiting stream must not hold it
}

// WriteHeartbeat implements Encoder.
func (t *Text) WriteHeartbeat() { t.write(t.format.Heartbeat()) }

// WriteGoodbye implements Encoder.
func (t *Text) WriteGoodbye(c *Session, reason stream.GoodbyeReason) {
	t.write(t.format.AppendGoodbye(nil, reason, c.Retry))
	if t.Zipper != nil {
		t.Zipper.end(t.out)
	}
}

// Restart begins to sum up what is written from now on, and returns the sum of all before it.
func (t *Text) Restart() (before wire.Sum) {
	if t.Zipper != nil {
		before, t.Zipper.Sum = t.Zipper.Sum, before
	}
	return before
}

// Resume returns the sum of what was written since Restart, and continues with that of everything.
func (t *Text) Resume(before wire.Sum) (since wire.Sum) {
	if t.Zipper != nil {
		since = t.Zipper.Sum
		t.Zipper.Sum = before.Then(since)
	}
	return since
}

// Wrote counts a text with a sum that was written by others, as so many bytes.
func (t *Text) Wrote(sum wire.Sum, bytes int) {
	if t.Zipper != nil {
		t.Zipper.Sum = t.Zipper.Sum.Then(sum)
		t.Zipper.metrics.Compressed(sum.Length(), bytes)
	}
}

// write writes bytes that are in no log.
func (t *Text) write(p []byte) {
	if t.Zipper != nil {
		t.Zipper.own(p, t.out)
		return
	}
	t.out.Write(p)
}
