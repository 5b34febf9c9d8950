package shard

import (
	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/wire"
)

// outbox holds the bytes of one stream that its connection has not taken yet, as
// chunks of an HTTP/1.1 body, or bare. It is an outlet: small slices are copied, large ones
// stay where they are, in the log, which never changes them.
//
// Owned by one shard.
type outbox struct {
	bare bool // chunks have neither heads nor ends; static after construction

	slices [][]byte // to be written, in order
	buffer []byte   // where small slices are stored one after the other
	from   int      // where the bytes in buffer begin that are not in slices yet
	begun  int      // where the open chunk begins in slices
	size   int      // of the open chunk, as far as it is in slices
	said   int      // bytes of all chunks so far, without their heads
	unsent int      // bytes of sealed chunks
	holds  int      // bytes of the log that slices may retain, in larger slabs

	file *epoll.File // what follows the slices, held; nil: nothing does
	at   int         // where the bytes begin in the file that are not written yet
}

// outboxSmall is the largest size of a slice that is copied. A larger one is in the
// log, or is a long reason that a stream.Batch has released.
const outboxSmall = 4 << 10

// outboxFull is how many bytes of the log are written at once, so that the end of one
// chunk and the head of the next go out together.
const outboxFull = 96 << 10

// outboxKept is the largest size of a buffer that is reused.
const outboxKept = 4 << 10

// A reused buffer changes, so it must be too small for a file of the poller. This does
// not compile unless outboxKept < SlabFileSmallest.
const _ uint = epoll.SlabFileSmallest - outboxKept - 1

// outboxHolds is how many bytes of the log an outbox may retain before it counts as
// full: it may hold little of each slab, and retains them while the connection takes
// nothing.
const outboxHolds = 512 << 10

// full reports whether the outbox must be written before more is added.
func (o *outbox) full() bool {
	return o.unsent >= outboxFull || o.holds >= outboxHolds || o.file != nil
}

func (o *outbox) empty() bool {
	return len(o.slices) == 0 && len(o.buffer) == o.from && o.file == nil
}

// attach adds complete chunks that are in a file, which the outbox holds from then on. Nothing may be
// added after it before it is written. said is how many bytes the chunks have without their heads.
func (o *outbox) attach(f *epoll.File, said int) {
	o.file, o.at = f, 0
	o.said += said
}

// cut drops the slices from an index on, where a chunk begins, since a file has their bytes. They count as
// said. holds is what the outbox held before them. All chunks must be sealed.
func (o *outbox) cut(from, holds int) {
	o.unsent -= wire.LengthOf(o.slices[from:])
	clear(o.slices[from:])
	o.slices = o.slices[:from]
	o.begun, o.holds = from, holds
}

// sentFile drops the first n bytes of the file.
func (o *outbox) sentFile(n int) {
	if o.at += n; o.at < o.file.Size() {
		return
	}
	o.detach()
	if len(o.slices) == 0 {
		o.reset()
	}
}

// detach releases the file, if there is one.
func (o *outbox) detach() {
	if o.file != nil {
		o.file.Release()
		o.file, o.at = nil, 0
	}
}

// Write implements outlet: p becomes a part of the open chunk.
func (o *outbox) Write(p []byte) {
	o.said += len(p)
	if len(p) <= outboxSmall {
		o.buffer = append(o.buffer, p...)
		return
	}
	o.gather()
	o.slices = append(o.slices, p)
	o.size += len(p)
}

// gather turns the small ones into a slice.
func (o *outbox) gather() {
	if len(o.slices) == o.begun && !o.bare {
		o.slices = append(o.slices, nil) // for the head of the chunk
	}
	if len(o.buffer) > o.from {
		o.slices = append(o.slices, o.buffer[o.from:])
		o.size += len(o.buffer) - o.from
		o.from = len(o.buffer)
	}
}

// seal ends the open chunk, if anything is in it.
func (o *outbox) seal() {
	o.gather()
	if o.size == 0 {
		o.slices = o.slices[:o.begun]
		return
	}
	if o.bare {
		o.unsent += o.size
		o.begun, o.size = len(o.slices), 0
		return
	}
	o.buffer = wire.AppendChunkHead(o.buffer, o.size)
	o.slices[o.begun] = o.buffer[o.from:]
	o.unsent += o.size + len(o.slices[o.begun])
	o.raw(wire.ChunkEnd)
}

// raw adds bytes as they are. No chunk may be open.
func (o *outbox) raw(p []byte) {
	o.slices = append(o.slices, p)
	o.unsent += len(p)
	o.begun, o.size, o.from = len(o.slices), 0, len(o.buffer)
}

// sent drops the first n bytes. All chunks must be sealed.
func (o *outbox) sent(n int) {
	o.unsent -= n
	done := 0
	for done < len(o.slices) && n >= len(o.slices[done]) {
		n -= len(o.slices[done])
		done++
	}
	if done == len(o.slices) {
		o.reset()
		return
	}
	o.slices[done] = o.slices[done][n:]
	clear(o.slices[:done]) // written slices must not be retained
	o.slices = o.slices[done:]
	o.begun = len(o.slices)
}

func (o *outbox) reset() {
	clear(o.slices)
	o.slices, o.buffer = o.slices[:0], o.buffer[:0]
	o.begun, o.size, o.from, o.unsent, o.holds = 0, 0, 0, 0, 0
	if cap(o.buffer) > outboxKept {
		o.buffer = nil
	}
}
