package gatewaytest

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
)

// hangupWatcher is the hangup watcher of the in-memory network: a goroutine for each
// connection, which reads until its client disconnects.
type hangupWatcher struct {
	mu      sync.Mutex // guards the following fields
	last    uint64
	clients map[uint64]*epoll.FarSide
}

// NewHangupWatcher returns a watcher of the connections of a Network.
func NewHangupWatcher() (epoll.HangupWatcher, error) {
	return &hangupWatcher{clients: map[uint64]*epoll.FarSide{}}, nil
}

// Watch implements epoll.HangupWatcher.
func (l *hangupWatcher) Watch(c net.Conn, who *epoll.FarSide) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	key := l.last
	l.clients[key] = who
	go func() {
		var err error
		for b := make([]byte, 64); err == nil || errors.Is(err, os.ErrDeadlineExceeded); {
			_, err = netconn.Bottom(c).Read(b) // net/http's deadline, while it releases the connection
			runtime.Gosched()
		}
		l.leave(key)
	}()
	return key, nil
}

func (l *hangupWatcher) leave(key uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if who := l.clients[key]; who != nil {
		who.Left()
		delete(l.clients, key)
	}
}

// Forget implements epoll.HangupWatcher.
func (l *hangupWatcher) Forget(key uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.clients, key)
}

// Close implements epoll.HangupWatcher.
func (l *hangupWatcher) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, who := range l.clients {
		who.Left()
		delete(l.clients, key)
	}
}

// Read implements epoll.HangupWatcher.
func (l *hangupWatcher) Read(net.Conn, []byte) (int, error) { return 0, os.ErrDeadlineExceeded }
