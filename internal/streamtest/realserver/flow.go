package realserver

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// chunk is the result of one read.
type chunk struct {
	bytes []byte
	read  time.Time
	err   error // set in the last one of a stream: io.EOF, or how it broke
}

const (
	chunkSize = 16 << 10
	queueSize = 64 // chunks; a stalled connection reads no more than these
)

// flow is one direction of a link.
type flow struct {
	// Static after construction.
	link     *link
	from, to *net.TCPConn
	count    *atomic.Int64
	queue    chan chunk // closed by the reading half at the end of the stream

	// Atomic.
	finished atomic.Bool // what arrives is discarded
}

func newFlow(l *link, from, to *net.TCPConn, count *atomic.Int64) *flow {
	return &flow{link: l, from: from, to: to, count: count, queue: make(chan chunk, queueSize)}
}

// run carries the stream until it ends. Reading and writing are two goroutines, so
// that a delay does not reduce the throughput.
func (f *flow) run() {
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(f.read)
	for c := range f.queue {
		if !f.link.proxy.pass(f.link.ctx, c.read) {
			f.link.cancel()
			return
		}
		f.write(c)
	}
}

func (f *flow) read() {
	defer close(f.queue)
	for {
		buffer := make([]byte, chunkSize)
		n, err := f.from.Read(buffer)
		select {
		case f.queue <- chunk{buffer[:n], time.Now(), err}:
		case <-f.link.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// write forwards a chunk, and the end of the stream if it has one.
func (f *flow) write(c chunk) {
	err := f.trickle(c.bytes)
	switch {
	case f.finished.Load():
		return
	case err != nil, c.err != nil && !errors.Is(c.err, io.EOF):
		f.link.cancel()
	case c.err != nil:
		f.finish()
	}
}

// trickle writes as fast as the weather allows.
func (f *flow) trickle(b []byte) error {
	for len(b) > 0 && !f.finished.Load() {
		if !f.link.proxy.pass(f.link.ctx, time.Time{}) { // a stall may begin midway
			return net.ErrClosed
		}
		w := f.link.proxy.weather.Load()
		piece, pause := w.piece(len(b))
		f.count.Add(int64(piece)) // before: the receiver may look as soon as it has them
		n, err := f.to.Write(b[:piece])
		f.count.Add(int64(n - piece))
		if err != nil {
			return err
		}
		b = b[n:]
		if pause > 0 && !w.wait(f.link.ctx, pause) {
			return net.ErrClosed
		}
	}
	return nil
}

// finish sends the end of the stream.
func (f *flow) finish() {
	f.finished.Store(true)
	f.to.CloseWrite()
}
