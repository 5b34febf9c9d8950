package session

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/wire"
)

// hijackedStream is a stream of the goroutine pump that has a connection to itself,
// taken from net/http, with TLS if there is any. While it waits, all that remains is
// one goroutine with a small stack; net/http would keep two, and its buffers.
//
// Owned by that goroutine.
type hijackedStream struct {
	// Static after construction, except ended and heard.
	of     *Hijacked
	conn   net.Conn // to write to
	bottom net.Conn // of conn
	key    uint64   // at the hangup watcher
	far    *epoll.FarSide

	ended bool // the client was seen to have ended its side
	heard int  // bytes that the client has sent over TLS after its request
}

// Hijacked is the set of all hijacked streams.
//
// All methods may be called from any goroutine.
type Hijacked struct {
	newHangupWatcher func() (epoll.HangupWatcher, error) // static after construction; nil: there are no hijacked streams

	running sync.WaitGroup

	mu            sync.Mutex          // guards the following fields
	hangupWatcher epoll.HangupWatcher // nil: there has been no hijacked stream yet
	open          map[*hijackedStream]struct{}
	aborted       bool // no more are admitted
}

// NewHijacked returns an empty set. If newHangupWatcher is nil, no stream is hijacked.
func NewHijacked(newHangupWatcher func() (epoll.HangupWatcher, error)) *Hijacked {
	return &Hijacked{newHangupWatcher: newHangupWatcher, open: map[*hijackedStream]struct{}{}}
}

// Carry takes a stream, with its connection, from net/http. If it returns false,
// nothing has happened, and net/http's own goroutine can carry the stream.
func (h *Hijacked) Carry(w http.ResponseWriter, r *http.Request, c Session) bool {
	conn, whole := netconn.WholeConn(r)
	if h.newHangupWatcher == nil || !whole {
		return false
	}
	one := &hijackedStream{of: h, conn: conn, bottom: netconn.Bottom(conn), far: epoll.NewFarSide(r.TLS != nil)}
	if !h.admit(one) {
		return false
	}
	runs, taken := false, false
	defer func() {
		if runs {
			return
		}
		if taken {
			conn.Close()
		}
		h.dismiss(one)
	}()
	// Anything that the client sent after its request is not answered: the response
	// announces that it is the last one.
	if _, _, err := http.NewResponseController(w).Hijack(); err != nil {
		return false
	}
	taken = true
	p := newTextPump(c, wire.NewChunkWriter(conn, netconn.ResponseHead(w.Header())), nil)
	runs = true
	go one.run(p)
	return true
}

// admit admits a hijacked stream. It returns false if the system does not permit it.
func (h *Hijacked) admit(one *hijackedStream) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.aborted {
		return false
	}
	var err error
	if h.hangupWatcher == nil {
		if h.hangupWatcher, err = h.newHangupWatcher(); err != nil {
			h.hangupWatcher = nil
			return false
		}
	}
	if one.key, err = h.hangupWatcher.Watch(one.conn, one.far); err != nil {
		return false
	}
	h.open[one] = struct{}{}
	h.running.Add(1)
	return true
}

// dismiss forgets a hijacked stream. It does not close the connection.
func (h *Hijacked) dismiss(one *hijackedStream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hangupWatcher.Forget(one.key)
	delete(h.open, one)
	h.running.Done()
}

// Abort closes all streams abruptly, and waits for their goroutines.
func (h *Hijacked) Abort() {
	h.mu.Lock()
	h.aborted = true
	if h.hangupWatcher != nil {
		h.hangupWatcher.Close()
	}
	for one := range h.open {
		one.bottom.Close()
	}
	h.mu.Unlock()
	h.running.Wait()
}

// run carries the stream to its end. Variables on the stack here stay there while the
// stream waits, so there is nothing large.
func (s *hijackedStream) run(p *Pump) {
	defer s.end(p)
	p.far, p.waiter.input = s.far, s.far.News
	p.waiter.listen = func() bool { return s.listen(p) }
	if c := netconn.Of(s.conn); c != nil {
		c.Overdue = p.isOverdue
		if s.far.Reads {
			s.heard, c.ReadNow = c.HeardSinceRequest(), s.readNow
			s.far.Heard() // what came with the request, as far as net/http read it
		}
	}
	p.Run()
}

// end closes the connection, even if the stream failed: the panic of one stream must
// not end all of them.
func (s *hijackedStream) end(p *Pump) {
	if v := recover(); v != nil {
		p.Deps.Log.Error("a stream failed", "error", problem.Panicked(v))
		p.Release() // in case it failed before it began
	} else if p.GoodbyeSaid != "" && p.out.Failure() == nil {
		s.linger()
	}
	s.conn.Close()
	s.of.dismiss(s)
	p.Deps.Leave(p.AdmissionRef, p.Authorization)
}

// listenAtOnce is how many bytes of a client are read before its stream continues.
const listenAtOnce = 64 << 10

// listen handles input of the client and the end of its side. It returns false if
// the client disconnected. A client that ends only its own side is sent something at
// once, which resets the connection if the client has in fact disconnected.
func (s *hijackedStream) listen(p *Pump) bool {
	if s.far.Gone.Load() || s.far.Reads && !s.ended && !s.read() {
		return false
	}
	if s.far.Ended.Load() && !s.ended {
		s.ended = true
		p.ForceHeartbeat()
	}
	return true
}

// errSaysTooMuch ends a stream whose client sends more than epoll.HeardAtMost.
var errSaysTooMuch = errors.New("the client of a stream sends too much")

// readNow is what crypto/tls reads from.
func (s *hijackedStream) readNow(b []byte) (int, error) {
	if s.heard > epoll.HeardAtMost {
		return 0, errSaysTooMuch
	}
	n, err := s.of.hangupWatcher.Read(s.bottom, b[:min(len(b), epoll.HeardAtMost+1-s.heard)])
	s.heard += n
	return n, err
}

// read reads and drops what a TLS client has sent, and answers what TLS itself
// requires. It returns false if the client disconnected, or says too much. Ending one
// side alone is part of TLS 1.3 (RFC 8446, section 6.1); before that, it ended both.
func (s *hijackedStream) read() bool {
	buffer := wire.BorrowBuffer()
	defer wire.ReturnBuffer(buffer)
	for got := 0; got < listenAtOnce && s.heard <= epoll.HeardAtMost; {
		n, err := s.conn.Read((*buffer)[:cap(*buffer)])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return true
		case err == io.EOF && s.conn.(*tls.Conn).ConnectionState().Version >= tls.VersionTLS13:
			s.far.Ended.Store(true)
			return true
		case err != nil:
			return false
		}
		got += n
	}
	s.far.Heard() // there may be more
	return s.heard <= epoll.HeardAtMost
}

// linger lets the client read the rest of a stream that has ended: a connection that
// is closed with unread bytes is reset.
func (s *hijackedStream) linger() {
	if c, ok := s.conn.(*tls.Conn); ok {
		_ = c.CloseWrite() // an error means that the client disconnected
	}
	half, ok := s.bottom.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || s.bottom.SetReadDeadline(time.Now().Add(netconn.Linger)) != nil {
		return
	}
	buffer := wire.BorrowBuffer()
	defer wire.ReturnBuffer(buffer)
	_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{s.bottom}, (*buffer)[:cap(*buffer)])
}
