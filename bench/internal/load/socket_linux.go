package load

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket is a descriptor that never blocks.
type socket int32

// none is the socket of a connection without one.
const none socket = -1

// connect starts a connection from an address, if it is valid, to a server.
func connect(from netip.Addr, to netip.AddrPort, receiveBuffer int) (socket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return none, fmt.Errorf("socket: %w", err)
	}
	if err := begin(fd, from, to, receiveBuffer); err != nil {
		unix.Close(fd)
		return none, err
	}
	return socket(fd), nil
}

func begin(fd int, from netip.Addr, to netip.AddrPort, receiveBuffer int) error {
	if receiveBuffer > 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer); err != nil {
			return fmt.Errorf("SO_RCVBUF: %w", err)
		}
	}
	if from.IsValid() {
		// connect chooses the port, since it knows the server: else each address
		// would have its ports only once, for all servers together.
		if err := unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1); err != nil {
			return fmt.Errorf("IP_BIND_ADDRESS_NO_PORT: %w", err)
		}
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: from.As4()}); err != nil {
			return fmt.Errorf("bind to %v: %w", from, err)
		}
	}
	err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	if err != nil && err != unix.EINPROGRESS {
		return fmt.Errorf("connect to %v: %w", to, err)
	}
	return nil
}

// read returns how many bytes there were; 0 at the end, -1 if there are none yet.
// It does not notify Go's scheduler, as it never blocks: that would be a large
// part of its cost.
func (s socket) read(b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(s), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	switch errno {
	case 0:
		return int(n), nil
	case syscall.EAGAIN, syscall.EINTR:
		return -1, nil
	}
	return 0, errno
}

// write requires room for all of b: it is the first data that is sent.
func (s socket) write(b []byte) error {
	n, err := unix.Write(int(s), b)
	if err == nil && n < len(b) {
		return fmt.Errorf("only %d of %d bytes of the request found room in the socket", n, len(b))
	}
	return err
}

// err returns the pending error of the socket, if any.
func (s socket) err() error {
	n, err := unix.GetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && n != 0 {
		err = syscall.Errno(n)
	}
	return err
}

// linger0 makes close send RST.
func (s socket) linger0() {
	unix.SetsockoptLinger(int(s), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

func (s socket) close() { unix.Close(int(s)) }

// poll is an epoll descriptor.
type poll struct {
	fd    int
	ready [512]unix.EpollEvent
	out   []event
}

// event is an event of one connection.
type event unix.EpollEvent

func (e event) conn() int         { return int(e.Fd) }
func (e event) generation() int32 { return e.Pad }
func (e event) readable() bool    { return e.Events&(unix.EPOLLIN|unix.EPOLLRDHUP) != 0 }
func (e event) broken() bool      { return e.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 }

func newPoll() (*poll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	return &poll{fd: fd}, nil
}

// add waits for the socket to be connected.
func (p *poll) add(s socket, conn int, generation int32) error {
	return p.control(unix.EPOLL_CTL_ADD, s, unix.EpollEvent{Events: unix.EPOLLOUT, Fd: int32(conn), Pad: generation})
}

// modify waits for bytes, or only for errors.
func (p *poll) modify(s socket, conn int, generation int32, readable bool) error {
	e := unix.EpollEvent{Fd: int32(conn), Pad: generation}
	if readable {
		e.Events = unix.EPOLLIN | unix.EPOLLRDHUP
	}
	return p.control(unix.EPOLL_CTL_MOD, s, e)
}

func (p *poll) control(do int, s socket, e unix.EpollEvent) error {
	if err := unix.EpollCtl(p.fd, do, int(s), &e); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// wait returns the events, which are valid until the next call. It waits for
// whole milliseconds.
func (p *poll) wait(timeout time.Duration) ([]event, error) {
	rounded := (timeout + time.Millisecond - 1).Milliseconds()
	n, err := unix.EpollWait(p.fd, p.ready[:], int(rounded))
	if err == unix.EINTR {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("epoll_wait: %w", err)
	}
	p.out = p.out[:0]
	for _, e := range p.ready[:n] {
		p.out = append(p.out, event(e))
	}
	return p.out, nil
}

func (p *poll) close() error { return unix.Close(p.fd) }
