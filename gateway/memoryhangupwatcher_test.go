package gateway

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/poll"
)

// memoryHangupWatcher is the hangup watcher of the in-memory network: a goroutine for each
// connection, which reads until its client leaves.
type memoryHangupWatcher struct {
	mu      sync.Mutex // guards the following fields
	last    uint64
	clients map[uint64]*poll.FarSide
}

func newMemoryHangupWatcher() (poll.HangupWatcher, error) {
	return &memoryHangupWatcher{clients: map[uint64]*poll.FarSide{}}, nil
}

func (l *memoryHangupWatcher) Watch(c net.Conn, who *poll.FarSide) (uint64, error) {
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

func (l *memoryHangupWatcher) leave(key uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if who := l.clients[key]; who != nil {
		who.Left()
		delete(l.clients, key)
	}
}

func (l *memoryHangupWatcher) Forget(key uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.clients, key)
}

func (l *memoryHangupWatcher) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, who := range l.clients {
		who.Left()
		delete(l.clients, key)
	}
}

func (l *memoryHangupWatcher) Read(net.Conn, []byte) (int, error) { return 0, os.ErrDeadlineExceeded }
