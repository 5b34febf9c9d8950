package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/watchtide/watchtide/bench/internal/peers/feed"
)

// loop has all the state; one thread owns it.
type loop struct {
	poll, listener int
	in             *feed.Reader
	batch          bool
	subscribers    []int32
	frames         []byte // the events of a publish, encoded
	ends           []int  // the end of each of them
}

func run(batch bool) error {
	runtime.LockOSThread()
	debug.SetGCPercent(-1) // only a publish allocates
	debug.SetMemoryLimit(64 << 20)
	l := &loop{in: feed.NewReader(os.Stdin, os.Stdout), batch: batch}
	if err := l.listen(); err != nil {
		return err
	}
	events := make([]unix.EpollEvent, 512)
	for {
		n, err := unix.EpollWait(l.poll, events, -1)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("epoll_wait: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if err := l.handle(int(e.Fd)); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
}

func (l *loop) listen() (err error) {
	if l.listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	if err := unix.Bind(l.listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(l.listener, 4096); err != nil {
		return err
	}
	if l.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	name, err := unix.Getsockname(l.listener)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on 127.0.0.1:%d\n", name.(*unix.SockaddrInet4).Port)
	return errors.Join(l.add(l.listener), l.add(0))
}

func (l *loop) add(fd int) error {
	return unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

func (l *loop) handle(fd int) error {
	switch fd {
	case l.listener:
		return l.accept()
	case 0:
		return l.publish()
	}
	return l.receive(int32(fd))
}

func (l *loop) accept() error {
	for {
		fd, _, err := unix.Accept4(l.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err == unix.EAGAIN {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		unix.SetsockoptInt(fd, unix.SOL_TCP, unix.TCP_NODELAY, 1)
		if err := l.add(fd); err != nil {
			return err
		}
	}
}

var head = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\n")

// receive treats the first bytes of a connection as a request.
func (l *loop) receive(fd int32) error {
	var request [4096]byte
	n, err := unix.Read(int(fd), request[:])
	if n <= 0 {
		if err != unix.EAGAIN {
			l.leave(fd)
		}
		return nil
	}
	l.subscribers = append(l.subscribers, fd)
	write(fd, head)
	return nil
}

func (l *loop) leave(fd int32) {
	unix.Close(int(fd))
	for i, s := range l.subscribers {
		if s == fd {
			last := len(l.subscribers) - 1
			l.subscribers[i] = l.subscribers[last]
			l.subscribers = l.subscribers[:last]
			return
		}
	}
}

func (l *loop) publish() error {
	events, err := l.in.Next()
	if err != nil {
		return err
	}
	l.encode(events)
	if l.batch {
		l.deliver(l.frames)
	} else {
		for from := 0; len(l.ends) > 0; l.ends = l.ends[1:] {
			l.deliver(l.frames[from:l.ends[0]])
			from = l.ends[0]
		}
	}
	return l.in.Answer()
}

func (l *loop) encode(events [][]byte) {
	l.frames, l.ends = l.frames[:0], l.ends[:0]
	for _, e := range events {
		l.frames = append(l.frames, "event: upsert\ndata: "...)
		l.frames = append(l.frames, e...)
		l.frames = append(l.frames, "\n\n"...)
		l.ends = append(l.ends, len(l.frames))
	}
}

// deliver is the measured function.
func (l *loop) deliver(b []byte) {
	for _, fd := range l.subscribers {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if errno != 0 || int(n) < len(b) {
			write(fd, b[written(n, errno):])
		}
	}
}

func written(n uintptr, errno syscall.Errno) int {
	if errno != 0 {
		return 0
	}
	return int(n)
}

// write waits for a subscriber whose socket is full: that is the back-pressure.
// A disconnected one is closed when its end is read.
func write(fd int32, b []byte) {
	for len(b) > 0 {
		n, err := unix.Write(int(fd), b)
		switch err {
		case nil:
			b = b[n:]
		case unix.EAGAIN:
			unix.Poll([]unix.PollFd{{Fd: fd, Events: unix.POLLOUT}}, -1)
		default:
			return
		}
	}
}
