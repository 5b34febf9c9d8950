//go:build servers

package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"time"
)

// visit is the plan of one connection of a subscriber.
type visit struct {
	stay   time.Duration
	events int           // after which it disconnects; -1: it stays
	reads  time.Duration // between two stalls; 0: it does not stall
	stalls time.Duration
	narrow bool // a receive buffer of the system's minimum size
	abrupt bool // it disconnects by a reset
}

// slow reports that it does not read without delay.
func (v visit) slow() bool { return v.reads > 0 || v.narrow }

func (s *subscriber) planVisit() visit {
	v := visit{stay: s.upTo(longest), events: -1, abrupt: rand.IntN(2) == 0}
	switch rand.IntN(4) {
	case 0:
		v.events = rand.IntN(400) // often during a snapshot
	case 1:
		// The sockets hold more than a MiB, which takes a while to be filled.
		v.reads, v.stalls = s.upTo(5*time.Second)+time.Millisecond, s.upTo(longest)
		v.stay += v.stalls / 2
		v.narrow = rand.IntN(2) == 0
	}
	return v
}

// visitor is a connection that stalls and ends as planned. Owned by the goroutine
// that reads, except for the end of its context.
type visitor struct {
	conn    *net.TCPConn
	ctx     context.Context
	cancel  context.CancelFunc
	unwatch func() bool
	visit
	until  time.Time // it reads
	closes time.Time
}

func newVisitor(ctx context.Context, conn *net.TCPConn, v visit) *visitor {
	g := &visitor{conn: conn, visit: v, closes: time.Now().Add(v.stay)}
	if v.narrow {
		conn.SetReadBuffer(1) // the system makes it as small as it can
	}
	g.ctx, g.cancel = context.WithDeadline(ctx, g.closes)
	g.unwatch = context.AfterFunc(g.ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	g.until = time.Now().Add(v.reads)
	return g
}

// Read stalls when it is time to.
func (g *visitor) Read(p []byte) (int, error) {
	if g.reads > 0 && time.Now().After(g.until) {
		wait(g.ctx, g.stalls)
		g.until = time.Now().Add(g.reads)
	}
	n, err := g.conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errHungUp
	}
	return n, err
}

// leave closes the connection.
func (g *visitor) leave() {
	g.unwatch()
	g.cancel()
	if g.abrupt {
		g.conn.SetLinger(0)
	}
	g.conn.Close()
}
