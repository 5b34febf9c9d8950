package nats

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// meter counts the bytes received on a connection. A slow line that is busy with
// large values is not silent, though heartbeats and answers come late, behind them.
//
// Safe for concurrent use.
type meter struct{ received atomic.Int64 }

// busy is how many bytes within the stall time indicate that values are on their
// way; heartbeats and answers are fewer.
const busy = 16 << 10

// silences is how many times the stall time an answer may take, however busy the
// line is.
const silences = 15

// limited sets a request's time limit: the answer must come within limit, or
// more bytes within each limit until it does.
func (m *meter) limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, silences*limit)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.awaitSilence(ctx, limit)
		cancel()
	}()
	return ctx, func() { cancel(); <-ended }
}

// awaitSilence returns when the line was silent for limit, or ctx has ended.
func (m *meter) awaitSilence(ctx context.Context, limit time.Duration) {
	const looks = 4 // within limit
	ticks := time.NewTicker(limit / looks)
	defer ticks.Stop()
	before := m.received.Load()
	for quiet := 0; quiet < looks; {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		now := m.received.Load()
		if quiet++; now-before >= busy/looks {
			quiet = 0
		}
		before = now
	}
}

// meteredConn is a connection whose bytes are counted and checked before the library
// sees them, and that no longer needs its context once it is closed.
type meteredConn struct {
	net.Conn
	ctx     context.Context
	meter   *meter
	framing *framing
	greeted []byte // what was received and not read yet
	stop    func() bool
}

func (c *meteredConn) Read(b []byte) (n int, err error) {
	if len(c.greeted) > 0 {
		n = copy(b, c.greeted)
		c.greeted = c.greeted[n:]
	} else {
		n, err = c.Conn.Read(b)
	}
	c.meter.received.Add(int64(n))
	if wrong := c.framing.pass(b[:n]); wrong != nil {
		return 0, wrong
	}
	if cause := context.Cause(c.ctx); cause != nil {
		return 0, cause // it may have been too much
	}
	return n, err
}

func (c *meteredConn) Close() error {
	c.stop()
	return c.Conn.Close()
}
