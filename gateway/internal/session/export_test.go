package session

import (
	"net"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/wire"
)

// Run carries a session over a connection, with another writer than usual. It returns false if
// the session is not admitted.
func (h *Hijacked) Run(conn net.Conn, c Session, out wire.Sender) bool {
	one := &hijackedStream{of: h, conn: conn, bottom: conn, far: epoll.NewFarSide(false)}
	if !h.admit(one) {
		return false
	}
	one.run(newTextPump(c, out, nil))
	return true
}

// Open returns how many streams there are.
func (h *Hijacked) Open() int { return len(h.open) }

// NewWaiter returns the waiter of a stream without a client.
var NewWaiter = newWaiter

func (w *waiter) Wait() { w.wait(nil, time.Now()) }

func (w *waiter) Close() { w.close() }
