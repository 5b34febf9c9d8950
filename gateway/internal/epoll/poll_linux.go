package epoll

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"golang.org/x/sys/unix"
)

// epoll is the poller of Linux; see epoll(7).
type epoll struct {
	// Static after construction.
	file  *os.File // of the epoll
	raw   syscall.RawConn
	fd    int // of the same
	waker int // eventfd(2)
	slabs *slabFile
	poll  func(fd uintptr) bool // method ready
	// secured are the connections with TLS.
	secured *securedTable

	// Owned by the shard.
	notices []unix.EpollEvent
	found   int          // what ready has found
	failed  error        // or why not
	vector  []unix.Iovec // these are reused, and hold nothing between calls
	message unix.Msghdr
	plain   []byte // of a record
	sealed  []byte // what crypto/tls has encrypted
	one     [1][]byte
	heard   []Notice // of what clients have said by TLS, for Wait
}

// tcpSockets are the sockets of the kernel.
type tcpSockets struct {
	// Static after construction.
	slabs       *slabFile
	connections *netconn.Connections // that count the handles
	secured     *securedTable
}

// SystemSockets returns the sockets of the kernel. The connections count the handles.
func SystemSockets(c *netconn.Connections) Sockets {
	return tcpSockets{newSlabFile(), c, newSecuredTable()}
}

// NewPoller implements sockets.
func (s tcpSockets) NewPoller() (Poller, error) {
	file, fd, err := newEpoll()
	if err != nil {
		return nil, err
	}
	waker, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		file.Close()
		return nil, os.NewSyscallError("eventfd", err)
	}
	p := &epoll{file: file, fd: fd, waker: waker, slabs: s.slabs, secured: s.secured, notices: make([]unix.EpollEvent, 256)}
	p.poll = p.ready
	if p.raw, err = file.SyscallConn(); err == nil {
		err = p.control(unix.EPOLL_CTL_ADD, waker, unix.EPOLLIN, wakerKey)
	}
	if err != nil {
		p.Shut()
		return nil, err
	}
	return p, nil
}

// newEpoll returns an epoll that the runtime can wait for, and its descriptor: the method Fd of
// a file may make it a blocking one.
func newEpoll() (file *os.File, fd int, err error) {
	fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, 0, os.NewSyscallError("epoll_create1", err)
	}
	// The runtime waits for a non-blocking file to become readable, and an epoll is
	// readable while it has events.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, 0, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "epoll"), fd, nil
}

// wakerKey is the key of the waker; it stands for no connection.
const wakerKey = ^uint64(0)

func (p *epoll) control(operation, fd int, events uint32, key uint64) error {
	e := unix.EpollEvent{Events: events, Fd: int32(uint32(key)), Pad: int32(key >> 32)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, operation, fd, &e))
}

// Take duplicates the descriptor out of the runtime's poller. The duplicate stays
// non-blocking: that is a property of the connection, not of the descriptor.
func (s tcpSockets) Take(c net.Conn) (Handle, error) {
	tcp, ok := netconn.Bottom(c).(*net.TCPConn)
	if !ok {
		return 0, fmt.Errorf("a %T is not plain TCP", c)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	if secure, ok := c.(*tls.Conn); ok && (netconn.Of(c) == nil || !secure.ConnectionState().HandshakeComplete) {
		return 0, errors.New("the handshake of TLS is not complete, or the connection is not from a listener of this program")
	}
	fd := -1
	var failed error
	if err := raw.Control(func(old uintptr) {
		fd, failed = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, os.NewSyscallError("fcntl", failed)
	}
	s.connections.Add()
	h := Handle(fd)
	if secure, ok := c.(*tls.Conn); ok {
		h |= securedBit
		s.secured.set(h, &secured{conn: secure, beneath: netconn.Of(c)})
	}
	return h, nil
}

// watched are the events that are reported once for a connection: a client that has
// ended its side may keep reading indefinitely. Errors are always reported.
const watched = unix.EPOLLRDHUP | unix.EPOLLET

func (p *epoll) Watch(h Handle, key uint64) error {
	if h&securedBit != 0 {
		p.take(p.secured.get(h), h, key)
	}
	return p.control(unix.EPOLL_CTL_ADD, h.fd(), p.events(h, false), key)
}

func (p *epoll) Await(h Handle, key uint64, writable bool) error {
	if h&securedBit != 0 {
		p.secured.get(h).awaits = writable
	}
	return p.control(unix.EPOLL_CTL_MOD, h.fd(), p.events(h, writable), key)
}

func (p *epoll) Wait(dst []Notice, timeout time.Duration) ([]Notice, error) {
	dst = append(dst, p.heard...)
	if !p.ready(uintptr(p.fd)) && timeout != 0 && len(p.heard) == 0 {
		if err := p.park(timeout); err != nil {
			return dst, err
		}
	}
	p.heard = p.heard[:0]
	if p.failed != nil && !errors.Is(p.failed, unix.EINTR) {
		return dst, os.NewSyscallError("epoll_wait", p.failed)
	}
	for _, e := range p.notices[:max(p.found, 0)] {
		key := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
		if key == wakerKey {
			p.silence()
			continue
		}
		dst = append(dst, Notice{
			Key:      key,
			Gone:     e.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0,
			Ended:    e.Events&unix.EPOLLRDHUP != 0,
			Writable: e.Events&unix.EPOLLOUT != 0,
			Readable: e.Events&unix.EPOLLIN != 0,
		})
	}
	return dst, nil
}

// ready looks for events, and reports whether there is anything to return.
func (p *epoll) ready(fd uintptr) bool {
	p.found, p.failed = unix.EpollWait(int(fd), p.notices, 0)
	return p.found != 0
}

// park waits for events in the runtime's own poller. A thread that waits in the kernel by
// itself keeps its processor until the runtime's monitor takes it away. If all shards do that
// after a commit, nobody listens to the upstream and to new connections for up to 10 ms.
func (p *epoll) park(timeout time.Duration) error {
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	if err := p.file.SetReadDeadline(deadline); err != nil {
		return err
	}
	err := p.raw.Read(p.poll)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

func (p *epoll) Ring() {
	anything := [8]byte{1}
	_, _ = unix.Write(p.waker, anything[:]) // full: it is already rung
}

func (p *epoll) silence() {
	var count [8]byte
	_, _ = unix.Read(p.waker, count[:])
}

// Write calls the kernel without notifying the scheduler: the call cannot block.
func (p *epoll) Write(h Handle, b []byte) (int, error) {
	if h&securedBit != 0 {
		p.one[0] = b
		defer clear(p.one[:])
		return p.writeSecured(h, p.one[:])
	}
	return p.send(int(h), b)
}

// send writes one slice.
func (p *epoll) send(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, socketError(errno)
	}
	if int(n) < len(b) {
		return int(n), ErrBlocked
	}
	return int(n), nil
}

// maxVector is below IOV_MAX.
const maxVector = 512

// WriteAll sends slabs that go to many connections from a file.
func (p *epoll) WriteAll(h Handle, bs [][]byte, more bool) (total int, err error) {
	if h&securedBit != 0 {
		return p.writeSecured(h, bs)
	}
	for len(bs) > 0 {
		n, whole, err := p.writeSome(h, bs, more)
		total += n
		if err != nil {
			return total, err
		}
		bs = bs[whole:]
	}
	return total, nil
}

// writeSome writes as much as one call can, and returns how many slices that were.
func (p *epoll) writeSome(h Handle, bs [][]byte, more bool) (n, whole int, err error) {
	if n, err, there := p.slabs.send(int(h), bs[0]); there {
		return complete(n, 1, len(bs[0]), err)
	}
	some := bs[:p.beforeSlab(bs)]
	n, err = p.gather(h, some, more || len(some) < len(bs))
	return complete(n, len(some), wire.LengthOf(some), err)
}

// beforeSlab returns how many slices can go into one call: those before the next that
// may be in the file.
func (p *epoll) beforeSlab(bs [][]byte) int {
	n := 1
	for n < min(len(bs), maxVector) && len(bs[n]) < SlabFileSmallest {
		n++
	}
	return n
}

// gather writes slices with one call, without notifying the scheduler: it cannot
// block. If more follows, the kernel waits for it before it sends a partial packet.
func (p *epoll) gather(h Handle, bs [][]byte, more bool) (int, error) {
	p.vector = p.vector[:0]
	for _, b := range bs {
		p.vector = append(p.vector, unix.Iovec{Base: unsafe.SliceData(b), Len: uint64(len(b))})
	}
	flags := uintptr(unix.MSG_NOSIGNAL | unix.MSG_DONTWAIT)
	if more {
		flags |= unix.MSG_MORE
	}
	p.message = unix.Msghdr{Iov: unsafe.SliceData(p.vector), Iovlen: uint64(len(p.vector))}
	n, _, errno := syscall.RawSyscall(syscall.SYS_SENDMSG, uintptr(h), uintptr(unsafe.Pointer(&p.message)), flags)
	p.message = unix.Msghdr{}
	clear(p.vector)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// complete turns a short write into an error.
func complete(n, whole, want int, err error) (int, int, error) {
	switch {
	case err != nil:
		return 0, 0, socketError(err)
	case n < want:
		return n, 0, ErrBlocked
	}
	return n, whole, nil
}

func socketError(err error) error {
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return ErrBlocked
	}
	return os.NewSyscallError("write", err)
}

func (p *epoll) Finish(h Handle, key uint64) error {
	if h&securedBit != 0 {
		p.sayLast(h)
		p.secured.get(h).ended = true
	}
	if err := unix.Shutdown(h.fd(), unix.SHUT_WR); err != nil {
		return os.NewSyscallError("shutdown", err)
	}
	return p.control(unix.EPOLL_CTL_MOD, h.fd(), unix.EPOLLIN|unix.EPOLLRDHUP, key)
}

func (p *epoll) Discard(h Handle) bool {
	if h&securedBit != 0 {
		if c := p.secured.get(h); !c.ended {
			return p.hear(h, c)
		}
	}
	var b [4096]byte
	for range 16 {
		n, err := unix.Read(h.fd(), b[:])
		if n <= 0 {
			return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)
		}
	}
	return true
}

// Close implements sockets.
func (s tcpSockets) Close(h Handle) {
	if h&securedBit != 0 {
		s.secured.set(h, nil)
	}
	unix.Close(h.fd())
	s.connections.Drop()
}

func (p *epoll) Shut() {
	unix.Close(p.waker)
	p.file.Close()
}
