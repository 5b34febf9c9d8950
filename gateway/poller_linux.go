package gateway

import (
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
	fd    int
	waker int // eventfd(2)
	slabs *slabFile

	// Owned by the shard.
	events  []unix.EpollEvent
	vector  []unix.Iovec // these are reused, and hold nothing between calls
	message unix.Msghdr
}

// tcpSockets are the sockets of the kernel.
type tcpSockets struct {
	// Static after construction.
	slabs       *slabFile
	connections *netconn.Connections // that count the handles
}

func systemSockets(c *netconn.Connections) sockets { return tcpSockets{newSlabFile(), c} }

// newPoller implements sockets.
func (s tcpSockets) newPoller() (poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	waker, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	p := &epoll{fd: fd, waker: waker, slabs: s.slabs, events: make([]unix.EpollEvent, 256)}
	if err := p.control(unix.EPOLL_CTL_ADD, waker, unix.EPOLLIN, wakerKey); err != nil {
		p.shut()
		return nil, err
	}
	return p, nil
}

// wakerKey is the key of the waker; it stands for no connection.
const wakerKey = ^uint64(0)

func (p *epoll) control(operation, fd int, events uint32, key uint64) error {
	e := unix.EpollEvent{Events: events, Fd: int32(uint32(key)), Pad: int32(key >> 32)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, operation, fd, &e))
}

// take duplicates the descriptor out of the runtime's poller. The duplicate stays
// non-blocking: that is a property of the connection, not of the descriptor.
func (s tcpSockets) take(c net.Conn) (handle, error) {
	tcp, ok := netconn.Bottom(c).(*net.TCPConn)
	if !ok {
		return 0, fmt.Errorf("a %T is not plain TCP", c)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, err
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
	s.connections.Hold()
	return handle(fd), nil
}

// watched is what is reported about a connection, once each: a client that has ended
// its side may keep reading for as long as it likes. Errors are always reported.
const watched = unix.EPOLLRDHUP | unix.EPOLLET

func (p *epoll) watch(h handle, key uint64) error {
	return p.control(unix.EPOLL_CTL_ADD, int(h), watched, key)
}

func (p *epoll) await(h handle, key uint64, writable bool) error {
	events := uint32(watched)
	if writable {
		events |= unix.EPOLLOUT
	}
	return p.control(unix.EPOLL_CTL_MOD, int(h), events, key)
}

func (p *epoll) wait(dst []notice, timeout time.Duration) ([]notice, error) {
	n, err := unix.EpollWait(p.fd, p.events, milliseconds(timeout))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return dst, os.NewSyscallError("epoll_wait", err)
	}
	for _, e := range p.events[:max(n, 0)] {
		key := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
		if key == wakerKey {
			p.silence()
			continue
		}
		dst = append(dst, notice{
			key:      key,
			gone:     e.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0,
			ended:    e.Events&unix.EPOLLRDHUP != 0,
			writable: e.Events&unix.EPOLLOUT != 0,
			readable: e.Events&unix.EPOLLIN != 0,
		})
	}
	return dst, nil
}

// milliseconds rounds up, so that whatever is due is due when wait returns.
func milliseconds(d time.Duration) int {
	if d < 0 {
		return -1
	}
	return int(min((d+time.Millisecond-1)/time.Millisecond, 1<<30))
}

func (p *epoll) ring() {
	anything := [8]byte{1}
	_, _ = unix.Write(p.waker, anything[:]) // full: it is already rung
}

func (p *epoll) silence() {
	var count [8]byte
	_, _ = unix.Read(p.waker, count[:])
}

// write calls the kernel without notifying the scheduler: the call cannot block.
func (p *epoll) write(h handle, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(h), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, socketError(errno)
	}
	if int(n) < len(b) {
		return int(n), errBlocked
	}
	return int(n), nil
}

// maxVector is below IOV_MAX.
const maxVector = 512

// writeAll sends slabs that go to many connections from a file.
func (p *epoll) writeAll(h handle, bs [][]byte) (total int, err error) {
	for len(bs) > 0 {
		n, whole, err := p.writeSome(h, bs)
		total += n
		if err != nil {
			return total, err
		}
		bs = bs[whole:]
	}
	return total, nil
}

// writeSome writes as much as one call can, and returns how many slices that were.
func (p *epoll) writeSome(h handle, bs [][]byte) (n, whole int, err error) {
	if n, err, there := p.slabs.send(int(h), bs[0]); there {
		return complete(n, 1, len(bs[0]), err)
	}
	some := bs[:p.beforeSlab(bs)]
	n, err = p.gather(h, some, len(some) < len(bs))
	return complete(n, len(some), wire.LengthOf(some), err)
}

// beforeSlab returns how many slices can go into one call: those before the next that
// may be in the file.
func (p *epoll) beforeSlab(bs [][]byte) int {
	n := 1
	for n < min(len(bs), maxVector) && len(bs[n]) < slabFileSmallest {
		n++
	}
	return n
}

// gather writes slices with one call, without notifying the scheduler: it cannot
// block. If more follows, the kernel waits for it before it sends a partial packet.
func (p *epoll) gather(h handle, bs [][]byte, more bool) (int, error) {
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

// complete turns a write that took less than it was given into an error.
func complete(n, whole, want int, err error) (int, int, error) {
	switch {
	case err != nil:
		return 0, 0, socketError(err)
	case n < want:
		return n, 0, errBlocked
	}
	return n, whole, nil
}

func socketError(err error) error {
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return errBlocked
	}
	return os.NewSyscallError("write", err)
}

func (p *epoll) finish(h handle, key uint64) error {
	if err := unix.Shutdown(int(h), unix.SHUT_WR); err != nil {
		return os.NewSyscallError("shutdown", err)
	}
	return p.control(unix.EPOLL_CTL_MOD, int(h), unix.EPOLLIN|unix.EPOLLRDHUP, key)
}

func (p *epoll) discard(h handle) bool {
	var b [4096]byte
	for range 16 {
		n, err := unix.Read(int(h), b[:])
		if n <= 0 {
			return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)
		}
	}
	return true
}

// close implements sockets.
func (s tcpSockets) close(h handle) {
	unix.Close(int(h))
	s.connections.Drop()
}

func (p *epoll) shut() {
	unix.Close(p.waker)
	unix.Close(p.fd)
}
