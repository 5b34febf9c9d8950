package epoll

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"golang.org/x/sys/unix"
)

// epollHangupWatcher is the hangup watcher of Linux: one epoll(7) besides the
// runtime's own, on which it is itself registered, so that it costs one goroutine
// and no thread. It forgets a closed connection by itself.
type epollHangupWatcher struct {
	// Static after construction.
	file *os.File // of the epoll
	raw  syscall.RawConn

	mu      sync.Mutex // guards the following fields
	last    uint64
	clients map[uint64]*FarSide // by key; nil: closed
}

// NewHangupWatcher returns a watcher with a goroutine, which ends when it is closed.
func NewHangupWatcher() (HangupWatcher, error) {
	file, _, err := newEpoll()
	if err != nil {
		return nil, err
	}
	l := &epollHangupWatcher{file: file, clients: map[uint64]*FarSide{}}
	if l.raw, err = l.file.SyscallConn(); err != nil {
		l.file.Close()
		return nil, err
	}
	go l.run()
	return l, nil
}

// Watch implements HangupWatcher.
func (l *epollHangupWatcher) Watch(c net.Conn, who *FarSide) (key uint64, err error) {
	bottom, ok := netconn.Bottom(c).(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("a %T has no descriptor", netconn.Bottom(c))
	}
	raw, err := bottom.SyscallConn()
	if err != nil {
		return 0, err
	}
	if key, err = l.enroll(who); err != nil {
		return 0, err
	}
	// Edges only: input and a disconnect of a client are each reported once.
	events := uint32(unix.EPOLLRDHUP | unix.EPOLLET)
	if who.Reads {
		events |= unix.EPOLLIN
	}
	if err := l.add(raw, events, key); err != nil {
		l.Forget(key)
		return 0, err
	}
	return key, nil
}

// enroll assigns a key to a client. Unlike a descriptor, a key is never reused.
func (l *epollHangupWatcher) enroll(who *FarSide) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clients == nil {
		return 0, os.ErrClosed
	}
	l.last++
	l.clients[l.last] = who
	return l.last, nil
}

// add makes the epoll watch a connection.
func (l *epollHangupWatcher) add(raw syscall.RawConn, events uint32, key uint64) error {
	e := unix.EpollEvent{Events: events, Fd: int32(uint32(key)), Pad: int32(key >> 32)}
	var failed error
	err := raw.Control(func(fd uintptr) {
		err := l.raw.Control(func(epoll uintptr) {
			failed = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_ADD, int(fd), &e)
		})
		failed = errors.Join(failed, err)
	})
	return errors.Join(err, os.NewSyscallError("epoll_ctl", failed))
}

// run reports events to clients until the hangup watcher is closed.
func (l *epollHangupWatcher) run() {
	defer l.Close()
	events := make([]unix.EpollEvent, 256)
	for {
		n, failed := 0, error(nil)
		err := l.raw.Read(func(fd uintptr) bool {
			n, failed = unix.EpollWait(int(fd), events, 0)
			return n != 0
		})
		if err != nil || failed != nil && !errors.Is(failed, unix.EINTR) {
			return
		}
		for _, e := range events[:max(n, 0)] {
			l.tell(uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32, e.Events)
		}
	}
}

func (l *epollHangupWatcher) tell(key uint64, events uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	who := l.clients[key]
	switch {
	case who == nil:
	case events&(unix.EPOLLHUP|unix.EPOLLERR) != 0:
		who.Left()
		delete(l.clients, key)
	default:
		if events&unix.EPOLLRDHUP != 0 {
			who.Ended.Store(true)
		}
		who.Heard()
	}
}

// Forget implements HangupWatcher.
func (l *epollHangupWatcher) Forget(key uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.clients, key)
}

// Close implements HangupWatcher.
func (l *epollHangupWatcher) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, who := range l.clients {
		who.Left()
	}
	l.clients = nil
	l.file.Close()
}

// Read implements HangupWatcher.
func (l *epollHangupWatcher) Read(c net.Conn, p []byte) (n int, err error) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		n, failed = readNow(int(fd), p)
		return true // it does not wait
	})
	if err != nil {
		return 0, err
	}
	return n, failed
}
