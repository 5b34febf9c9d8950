package epoll

import (
	"crypto/tls"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"golang.org/x/sys/unix"
)

// securedBit marks the handle of a connection with TLS. The other bits are its descriptor.
const securedBit Handle = 1 << 30

func (h Handle) fd() int { return int(h &^ securedBit) }

const (
	// recordBytes is how much is encrypted at once: the most that a record of TLS has. A
	// connection that takes no more holds as much until it does.
	recordBytes = 16 << 10
	// answerCost is what a byte of HeardAtMost counts that the gateway has to say.
	answerCost = 4
	// heardAtOnce is how many of them are read before others have their turn.
	heardAtOnce = 1 << 10
)

// secured is a connection with TLS that a poller carries. crypto/tls encrypts what the shard
// writes, by the connection beneath it, whose writes end up in a buffer; the poller sends that.
//
// A record that was encrypted must be sent. So if the connection takes only a part of it, a
// Write reports that it took less than it has encrypted, and is to be repeated with the same
// bytes and what follows them.
//
// Owned by one poller.
type secured struct {
	conn    *tls.Conn
	beneath *netconn.StallTimeoutConn

	key    uint64
	awaits bool
	rest   []byte // encrypted, and not sent
	ahead  int    // bytes that the shard is still to write, and that rest has already
	heard  int    // bytes that the client has sent after its request, and the cost of answers
	quota  int    // bytes that may still be read before others have their turn
	more   bool   // there may be more than that
	ended  bool   // the shard writes nothing more
}

// securedTable has the connections with TLS, by descriptor. Any goroutine may use it.
type securedTable struct {
	mu    sync.Mutex // held while the table grows
	conns atomic.Pointer[[]atomic.Pointer[secured]]
}

func newSecuredTable() *securedTable {
	t := &securedTable{}
	t.conns.Store(&[]atomic.Pointer[secured]{})
	return t
}

// get returns the connection of a handle with securedBit.
func (t *securedTable) get(h Handle) *secured { return (*t.conns.Load())[h.fd()].Load() }

// set adds a connection; nil removes it.
func (t *securedTable) set(h Handle, c *secured) {
	t.mu.Lock()
	defer t.mu.Unlock()
	conns := *t.conns.Load()
	if h.fd() >= len(conns) {
		grown := make([]atomic.Pointer[secured], max(2*len(conns), h.fd()+1, 64))
		for i := range conns {
			grown[i].Store(conns[i].Load())
		}
		t.conns.Store(&grown)
		conns = grown
	}
	conns[h.fd()].Store(c)
}

// take makes crypto/tls read from a descriptor, and write to the buffer of the poller.
func (p *epoll) take(c *secured, h Handle, key uint64) {
	if c.key, c.heard = key, c.beneath.HeardSinceRequest(); c.heard > HeardAtMost {
		p.heard = append(p.heard, Notice{Key: key, Gone: true})
	}
	c.beneath.ReadNow = func(b []byte) (int, error) { return c.read(h.fd(), b) }
	c.beneath.WriteNow = func(b []byte) (int, error) {
		p.sealed = append(p.sealed, b...)
		return len(b), nil
	}
}

// read reads without waiting, within the quota. Beyond that there is nothing now.
func (c *secured) read(fd int, b []byte) (int, error) {
	if c.quota <= 0 {
		c.more = true
		return 0, os.ErrDeadlineExceeded
	}
	n, err := readNow(fd, b[:min(len(b), c.quota)])
	c.quota -= n
	c.heard += n
	return n, err
}

// readNow reads without waiting. If there is nothing, it returns os.ErrDeadlineExceeded, which
// crypto/tls does not take for the end of the connection.
func readNow(fd int, b []byte) (int, error) {
	n, err := unix.Read(fd, b)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// watchedSecured are the events of a connection with TLS: its input is read too.
const watchedSecured = watched | unix.EPOLLIN

// events are what is reported of a connection.
func (p *epoll) events(h Handle, writable bool) uint32 {
	events := uint32(watched)
	if h&securedBit != 0 {
		events = watchedSecured
	}
	if writable {
		events |= unix.EPOLLOUT
	}
	return events
}

// writeSecured writes slices as if they were one.
func (p *epoll) writeSecured(h Handle, all [][]byte) (total int, err error) {
	c := p.secured.get(h)
	for left := (plaintext{all, 0}); ; {
		n, err := p.flushSecured(h, c)
		if errors.Is(err, ErrBlocked) {
			n = min(n, max(0, c.ahead-1)) // the last byte is taken with the last of the record
			c.ahead -= n
			return total + n, err
		}
		if err != nil {
			return total, err
		}
		total += c.ahead
		left.skip(c.ahead)
		if c.ahead = 0; len(left.slices) == 0 {
			return total, nil
		}
		p.sealed = p.sealed[:0]
		n, err = c.conn.Write(p.record(left))
		if c.ahead, c.rest = n, p.sealed; err != nil {
			return total, err
		}
	}
}

// sendSecured writes a file from an offset on.
func (p *epoll) sendSecured(h Handle, f *File, from int) (total int, err error) {
	for from+total < f.size {
		p.plain = slices.Grow(p.plain[:0], recordBytes)
		n, err := f.ReadAt(p.plain[:min(recordBytes, f.size-from-total)], int64(from+total))
		if err != nil {
			return total, err
		}
		p.one[0] = p.plain[:n]
		n, err = p.writeSecured(h, p.one[:])
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// plaintext is what a write has left: slices, of which the first begins at an offset.
type plaintext struct {
	slices [][]byte
	from   int
}

// skip drops n bytes, and empty slices in front.
func (u *plaintext) skip(n int) {
	for u.from += n; len(u.slices) > 0 && u.from >= len(u.slices[0]); u.slices = u.slices[1:] {
		u.from -= len(u.slices[0])
	}
}

// record returns the first bytes, as many as a record has.
func (p *epoll) record(u plaintext) []byte {
	if first := u.slices[0][u.from:]; len(first) >= recordBytes || len(u.slices) == 1 {
		return first[:min(len(first), recordBytes)]
	}
	p.plain = p.plain[:0]
	for _, b := range u.slices {
		b, u.from = b[u.from:], 0
		p.plain = append(p.plain, b[:min(len(b), recordBytes-len(p.plain))]...)
		if len(p.plain) == recordBytes {
			break
		}
	}
	return p.plain
}

// flushSecured sends what is encrypted, and returns how many bytes of that were sent.
func (p *epoll) flushSecured(h Handle, c *secured) (int, error) {
	if len(c.rest) == 0 {
		return 0, nil
	}
	n, err := p.send(h.fd(), c.rest)
	rest := c.rest[n:]
	switch {
	case len(rest) == 0:
		c.rest = nil
	case cap(p.sealed) > 0 && &c.rest[:1][0] == &p.sealed[:1][0]: // the buffer is for all connections
		c.rest = append([]byte(nil), rest...)
	default:
		c.rest = rest
	}
	return n, err
}

// hear reads what a client sends, drops it, and answers what TLS requires. It returns false if the
// client has disconnected, or says too much.
func (p *epoll) hear(h Handle, c *secured) bool {
	p.sealed = p.sealed[:0]
	c.quota, c.more = min(heardAtOnce, HeardAtMost+1-c.heard), false
	var b [heardAtOnce]byte
	for c.heard <= HeardAtMost {
		_, err := c.conn.Read(b[:])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return p.answer(h, c) && (!c.more || p.control(unix.EPOLL_CTL_MOD, h.fd(), p.events(h, c.awaits), c.key) == nil) // what is left is reported again
		case errors.Is(err, io.EOF) && c.conn.ConnectionState().Version >= tls.VersionTLS13:
			p.heard = append(p.heard, Notice{Key: c.key, Ended: true}) // it may still read (RFC 8446, section 6.1)
			return p.answer(h, c)
		case err != nil:
			return false
		}
	}
	return false
}

// answer sends what TLS has to say by itself, after what is to be sent.
func (p *epoll) answer(h Handle, c *secured) bool {
	if len(p.sealed) == 0 {
		return true
	}
	c.heard += answerCost * len(p.sealed)
	c.rest = append(append([]byte(nil), c.rest...), p.sealed...)
	_, err := p.flushSecured(h, c)
	return c.heard <= HeardAtMost && (err == nil || errors.Is(err, ErrBlocked))
}

// sayLast sends the alert that ends the writing (RFC 8446, section 6.1), if the connection takes it.
func (p *epoll) sayLast(h Handle) {
	c := p.secured.get(h)
	p.sealed = p.sealed[:0]
	if c.conn.CloseWrite() == nil {
		c.rest = append(append([]byte(nil), c.rest...), p.sealed...)
		_, _ = p.flushSecured(h, c)
	}
}
