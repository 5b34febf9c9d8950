package session

import (
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/log"
)

// zipper makes a body in a coding of the bytes of a session. Data in the log is
// compressed once for all streams; the few bytes of the stream's own are stored. It
// holds nothing back: everything written can be decompressed before more follows.
//
// Owned by one pump.
type zipper struct {
	// Static after construction.
	coding  wire.Coding
	pieces  *wire.Cache
	metrics *metrics.Metrics

	Sum wire.Sum // of everything written so far
}

// compressedAtMost is the largest size of a text that is compressed: about a
// millisecond's work, for which all others in a shard wait. A longer text is one
// large value, and is sent as it is.
const compressedAtMost = 256 << 10

// own writes a text of the stream's own.
func (z *zipper) own(p []byte, out wire.Outlet) {
	z.Sum = z.Sum.Write(p)
	z.write(len(p), z.coding.AppendStored(make([]byte, 0, len(p)+wire.StoredExtra), p), out)
}

// batch writes a batch that was appended as slices.
func (z *zipper) batch(b *log.Batch, slices [][]byte, out wire.Outlet) {
	for s := range b.Extents(slices) {
		if s.Segment == 0 {
			z.own(s.Slices[0], out)
			continue
		}
		if size := wire.LengthOf(s.Slices); size > compressedAtMost {
			sum, stored := z.coding.Store(s.Slices, out.Write)
			z.Sum = z.Sum.Then(sum)
			z.metrics.Compressed(size, stored)
			continue
		}
		p := z.pieces.Piece(z.coding, s.Segment, s.Parts, s.Slices)
		z.Sum = z.Sum.Then(p.Sum)
		z.write(wire.LengthOf(s.Slices), p.Bytes, out)
	}
}

// begin writes the beginning of the body.
func (z *zipper) begin(out wire.Outlet) {
	if head := z.coding.Head(); head != "" {
		out.Write([]byte(head))
	}
}

// end writes the end of the body.
func (z *zipper) end(out wire.Outlet) {
	if end := z.coding.AppendEnd(nil, z.Sum); len(end) > 0 {
		z.write(0, end, out)
	}
}

func (z *zipper) write(raw int, p []byte, out wire.Outlet) {
	z.metrics.Compressed(raw, len(p))
	out.Write(p)
}
