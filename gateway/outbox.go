package gateway

// outbox holds the bytes of one stream that its connection has not taken yet, as
// chunks of an HTTP/1.1 body. It is an outlet: what is small is copied, what is
// large stays where it lies, in the log, which nobody changes.
//
// Owned by one shard.
type outbox struct {
	slices [][]byte // to be written, in order
	buffer []byte   // where small ones lie side by side
	from   int      // where in buffer the bytes begin that are not in slices yet
	begun  int      // where in slices the open chunk begins
	size   int      // of the open chunk, as far as it is in slices
	said   int      // bytes of all chunks so far, without their heads
	unsent int      // bytes of sealed chunks
	holds  int      // bytes of the log that slices may keep, which lie in larger slabs
}

// outboxSmall is how large a slice may be to be copied. A larger one is in the log,
// or a long reason that a stream.Batch has let go of.
const outboxSmall = 4 << 10

// outboxFull is how many bytes are written at once, of what lies in the log: so
// that the end of one chunk and the head of the next go out together.
const outboxFull = 96 << 10

// outboxKept is how large a buffer may be to be used again.
const outboxKept = 4 << 10

// outboxHolds is how many bytes of the log an outbox may keep before it counts as
// full: little of each slab may be in it, and it stays for as long as the connection
// takes nothing.
const outboxHolds = 512 << 10

// full says whether what is there is to be written before more is said.
func (o *outbox) full() bool { return o.unsent >= outboxFull || o.holds >= outboxHolds }

func (o *outbox) empty() bool { return len(o.slices) == 0 && len(o.buffer) == o.from }

// write implements outlet: p becomes a part of the open chunk.
func (o *outbox) write(p []byte) {
	o.said += len(p)
	if len(p) <= outboxSmall {
		o.buffer = append(o.buffer, p...)
		return
	}
	o.gather()
	o.slices = append(o.slices, p)
	o.size += len(p)
}

// gather makes a slice of the small ones.
func (o *outbox) gather() {
	if len(o.slices) == o.begun {
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
	o.buffer = appendChunkHead(o.buffer, o.size)
	o.slices[o.begun] = o.buffer[o.from:]
	o.unsent += o.size + len(o.slices[o.begun])
	o.raw(chunkEnd)
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
	clear(o.slices[:done]) // what is written must not be held
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
