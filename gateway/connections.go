package gateway

import (
	"container/list"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// connections bounds the number of open client connections, over all listeners, below
// the number of descriptors that the process may have. When there are too many, the
// HTTP connection that has waited longest for its next request is closed first. If
// none is waiting, a few more are admitted for health checks alone: they are answered
// as long as anything is left to answer them.
//
// All methods may be called from any goroutine. A nil *connections counts nothing.
type connections struct {
	// Static after construction.
	limit int
	log   *slog.Logger

	mu       sync.Mutex // guards the following fields
	open     int
	idle     connList  // of HTTP, the longest waiting in front
	reserved connList  // those beyond the limit, the oldest in front
	excess   int       // how many came while there were too many, since the last warning
	warned   time.Time // the time of that warning
}

const (
	// reservedConnections is how many connections there may be beyond the limit.
	reservedConnections = 32
	// warnEvery is the minimum time between two warnings that there are too many.
	warnEvery = time.Minute
)

func newConnections(limit int, log *slog.Logger) *connections {
	return &connections{limit: limit, log: log}
}

// maxConnections returns how many connections that number of descriptors allows. Some
// descriptors are kept for upstreams, files and what carries the streams, and some
// for the connections beyond the limit.
func maxConnections(descriptors int) int {
	return max(descriptors-min(descriptors/8, 1024)-2*reservedConnections, descriptors/2, 1)
}

// enter admits a connection. If it returns false the connection must be closed. A
// connection that may only ask for the health of the gateway is marked.
func (c *connections) enter(conn *patientConn, health bool) bool {
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
	if len(c.reserved.at) >= reservedConnections {
		c.dropLocked(&c.reserved)
	}
	conn.reserved = true
	c.reserved.add(conn)
	return true
}

// leave removes a connection from the count.
func (c *connections) leave(conn *patientConn) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveLocked(conn)
}

func (c *connections) leaveLocked(conn *patientConn) {
	if conn.counted {
		conn.counted = false
		c.idle.remove(conn)
		c.reserved.remove(conn)
		c.open--
	}
}

// hold counts a duplicated descriptor, and its connection with it.
func (c *connections) hold() { c.add(1) }

// drop is called after such a descriptor is closed.
func (c *connections) drop() { c.add(-1) }

func (c *connections) add(n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += n
}

// dropLocked closes the connection in front of a list, if there is one.
func (c *connections) dropLocked(l *connList) bool {
	conn := l.first()
	if conn == nil {
		return false
	}
	c.leaveLocked(conn)
	conn.Conn.Close() // without TLS close_notify, which might block
	return true
}

// count returns how many connections are open.
func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// state records the state of an HTTP connection: see http.Server.ConnState.
func (c *connections) state(conn net.Conn, s http.ConnState) {
	p := patient(conn)
	if p == nil {
		return
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
func (c *connections) warn(message string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warnLocked(message, args...)
}

func (c *connections) warnLocked(message string, args ...any) {
	c.excess++
	if now := time.Now(); c.warned.IsZero() || now.Sub(c.warned) >= warnEvery {
		c.log.Warn(message, append(args, "open", c.open, "limit", c.limit, "came", c.excess)...)
		c.warned, c.excess = now, 0
	}
}

// accepted handles the error with which the system refused a new connection.
func (c *connections) accepted(err error) {
	if c == nil {
		return
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		c.warn("there are no descriptors for more connections: lower http.max_connections, or raise the limit (ulimit -n)", "error", err)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dropLocked(&c.idle)
	}
}

// connList is an ordered list of connections with lookup by connection.
type connList struct {
	order list.List // of *patientConn
	at    map[*patientConn]*list.Element
}

func (l *connList) add(c *patientConn) {
	if l.at == nil {
		l.at = map[*patientConn]*list.Element{}
	}
	if l.at[c] == nil {
		l.at[c] = l.order.PushBack(c)
	}
}

func (l *connList) remove(c *patientConn) {
	if e := l.at[c]; e != nil {
		l.order.Remove(e)
		delete(l.at, c)
	}
}

func (l *connList) first() *patientConn {
	if e := l.order.Front(); e != nil {
		return e.Value.(*patientConn)
	}
	return nil
}
