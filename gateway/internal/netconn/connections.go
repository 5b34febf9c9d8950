package netconn

import (
	"container/list"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/limits"
)

// Connections bounds the number of open client connections, over all listeners, below
// the number of descriptors that the process may have. When there are too many, the
// HTTP connection that has waited longest for its next request is closed first. If
// none is waiting, a few more are admitted for health checks alone: they are answered
// as long as resources allow.
//
// All methods may be called from any goroutine. A nil *Connections counts nothing.
type Connections struct {
	// Static after construction.
	log *slog.Logger

	mu       sync.Mutex // guards the following fields
	limit    int
	open     int
	idle     connList  // of HTTP, the longest waiting in front
	reserved connList  // those beyond the limit, the oldest in front
	excess   int       // arrivals while there were too many, since the last warning
	warned   time.Time // the time of that warning
}

const (
	// ReservedConnections is how many connections there may be beyond the limit.
	ReservedConnections = 32
	// warnEvery is the minimum time between two warnings that there are too many.
	warnEvery = time.Minute
)

// NewConnections returns a limiter of connections. configured is the most that may be
// open; it is lowered to the number that the limit on descriptors leaves, which is
// also the default if it is 0.
func NewConnections(configured int, log *slog.Logger) *Connections {
	c := &Connections{log: log}
	c.SetLimit(configured)
	return c
}

// SetLimit changes the number of connections that may be open, as NewConnections does.
func (c *Connections) SetLimit(configured int) {
	most := maxConnections(descriptorLimit())
	if configured == 0 || configured > most {
		if configured > 0 {
			c.log.Warn("fewer connections than configured: the limit on descriptors leaves no more (ulimit -n)", "configured", configured, "limit", most)
		}
		configured = most
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = configured
}

// maxConnections returns how many connections that number of descriptors allows. Some
// descriptors are kept for upstreams, files and the pumps, some for memory files, and some for the
// connections beyond the limit.
func maxConnections(descriptors int) int {
	return max(descriptors-min(descriptors/8, 1024)-memoryFiles(descriptors)-2*ReservedConnections, descriptors/2, 1)
}

// MemoryFiles returns how many memory files that connections share may be open at the same time.
func MemoryFiles() int { return memoryFiles(descriptorLimit()) }

func memoryFiles(descriptors int) int { return min(descriptors/16, 512) }

// enter admits a connection. If it returns false the connection must be closed. A
// connection that may only request the health of the gateway is marked.
func (c *Connections) enter(conn *StallTimeoutConn, health bool) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	conn.counted = true
	if c.open <= c.limit {
		return true
	}
	c.warnLocked("too many connections: those that wait for a request are closed, then new ones get no answer but for health checks")
	if c.dropLocked(&c.idle) {
		return true
	}
	if !health {
		c.leaveLocked(conn)
		return false
	}
	if len(c.reserved.at) >= ReservedConnections {
		c.dropLocked(&c.reserved)
	}
	conn.reserved = true
	c.reserved.add(conn)
	return true
}

// leave removes a connection from the count.
func (c *Connections) leave(conn *StallTimeoutConn) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveLocked(conn)
}

func (c *Connections) leaveLocked(conn *StallTimeoutConn) {
	if conn.counted {
		conn.counted = false
		c.idle.remove(conn)
		c.reserved.remove(conn)
		c.open--
	}
}

// Add counts a duplicated descriptor, and its connection with it.
func (c *Connections) Add() { c.add(1) }

// Drop is called after such a descriptor is closed.
func (c *Connections) Drop() { c.add(-1) }

func (c *Connections) add(n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += n
}

// dropLocked closes the connection in front of a list, if there is one.
func (c *Connections) dropLocked(l *connList) bool {
	conn := l.first()
	if conn == nil {
		return false
	}
	c.leaveLocked(conn)
	conn.Conn.Close() // without TLS close_notify, which might block
	return true
}

// Count returns how many connections are open.
func (c *Connections) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// Now returns how many connections are open, and how many may be.
func (c *Connections) Now() (open, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open, c.limit
}

// Waiting returns how many HTTP connections wait for their next request.
func (c *Connections) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.idle.at)
}

// State records the state of an HTTP connection: see http.Server.ConnState.
func (c *Connections) State(conn net.Conn, s http.ConnState) {
	p := Of(conn)
	if p == nil {
		return
	}
	if s == http.StateActive {
		p.request.Store(p.heard.Load()) // net/http reads on meanwhile, to see whether the client leaves
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case s != http.StateIdle:
		c.idle.remove(p)
	case p.counted && !p.reserved:
		c.idle.add(p)
	}
}

// warn logs, at most once every warnEvery, that connections are refused.
func (c *Connections) warn(message string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warnLocked(message, args...)
}

func (c *Connections) warnLocked(message string, args ...any) {
	c.excess++
	if now := time.Now(); c.warned.IsZero() || now.Sub(c.warned) >= warnEvery {
		c.log.Warn(message, append(args, "open", c.open, "limit", c.limit, "came", c.excess)...)
		c.warned, c.excess = now, 0
	}
}

// exhausted reports whether the system refused a connection for lack of descriptors. It then
// closes one that is idle.
func (c *Connections) exhausted(err error) bool {
	if c == nil || !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return false
	}
	c.warn("there are no descriptors for more connections: lower http.max_connections, or raise the limit (ulimit -n)", "error", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(&c.idle)
	return true
}

// connList is an ordered list of connections with lookup by connection.
type connList struct {
	order list.List // of *StallTimeoutConn
	at    map[*StallTimeoutConn]*list.Element
}

func (l *connList) add(c *StallTimeoutConn) {
	if l.at == nil {
		l.at = map[*StallTimeoutConn]*list.Element{}
	}
	if l.at[c] == nil {
		l.at[c] = l.order.PushBack(c)
	}
}

func (l *connList) remove(c *StallTimeoutConn) {
	if e := l.at[c]; e != nil {
		l.order.Remove(e)
		delete(l.at, c)
	}
}

func (l *connList) first() *StallTimeoutConn {
	if e := l.order.Front(); e != nil {
		return e.Value.(*StallTimeoutConn)
	}
	return nil
}

// ReservedFor refuses a request over a connection that is reserved for health checks.
// It returns nil if the connection is not.
func (c *Connections) ReservedFor(r *http.Request) *limits.Refusal {
	conn, _ := ConnOfRequest(r)
	if p := Of(conn); p == nil || !p.reserved {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &limits.Refusal{Reason: limits.RefusedConnections, Count: c.open, Limit: c.limit}
}
