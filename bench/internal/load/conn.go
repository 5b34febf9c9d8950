package load

import (
	"bytes"
	"time"
)

// conn is one connection. Owned by the Client.
type conn struct {
	socket     socket
	generation int32 // so that events of a closed one do not match the next
	state      state
	held       bool
	stalled    bool
	isDone     bool
	framing    framing
	marker     uint8  // state of the Client's marker
	done       uint8  // and of the Client's done
	request    []byte // until it is sent
	sent       int64  // when, in nanoseconds
	doneAfter  int64
	events     uint64
	bytes      uint64
}

type state uint8

const (
	closed     state = iota
	connecting       // the system is connecting
	held             // connected; the request waits for Release
	sent             // the request is sent
	answered         // bytes have arrived
)

// Poll waits until something arrives, at most for timeout, and handles it. It
// returns for how many connections there was something.
func (c *Client) Poll(timeout time.Duration) (int, error) {
	events, err := c.poll.wait(timeout)
	for _, e := range events {
		if k := &c.conns[e.conn()]; k.generation == e.generation() && k.state != closed {
			c.handle(e.conn(), k, e)
		}
	}
	return len(events), err
}

func (c *Client) handle(n int, k *conn, e event) {
	switch {
	case k.state == connecting:
		c.connected(n, k)
	case e.readable() && !k.stalled:
		c.read(n, k)
	case e.broken():
		c.end(n, k, k.socket.err())
	}
}

func (c *Client) connected(n int, k *conn) {
	if err := k.socket.err(); err != nil {
		c.end(n, k, err)
		return
	}
	c.stats.Connected++
	if k.held {
		k.state = held
		c.watch(n, k)
		return
	}
	c.send(n, k)
}

func (c *Client) send(n int, k *conn) {
	k.sent = time.Now().UnixNano()
	if err := k.socket.write(k.request); err != nil {
		c.end(n, k, err)
		return
	}
	k.state, k.request = sent, nil
	c.watch(n, k)
}

// watch sets the events that the loop waits for.
func (c *Client) watch(n int, k *conn) {
	if err := c.poll.modify(k.socket, n, k.generation, !k.stalled); err != nil {
		c.end(n, k, err)
	}
}

// end handles the unexpected end of a connection.
func (c *Client) end(n int, k *conn, err error) {
	early := k.state
	c.drop(k)
	if early == connecting {
		c.stats.Connected++
	}
	if early < answered {
		c.stats.Answered++
	}
	if err == nil && c.o.EndIsDone && early == answered {
		c.finish(n, k)
	} else {
		c.stats.Lost++
	}
	if c.o.OnEnd != nil {
		c.o.OnEnd(n, err)
	}
}

func (c *Client) read(n int, k *conn) {
	size, err := k.socket.read(c.buf)
	switch {
	case err != nil:
		c.end(n, k, err)
	case size == 0:
		c.end(n, k, nil)
	case size > 0:
		c.received(n, k, c.buf[:size])
	}
}

func (c *Client) received(n int, k *conn, b []byte) {
	if k.state == sent {
		c.answer(k, b)
	}
	k.bytes += uint64(len(b))
	c.stats.Bytes += uint64(len(b))
	c.stats.Reads++
	if c.o.OnBytes != nil {
		c.o.OnBytes(n, b)
	}
	// A hook may have closed the connection, or started it again.
	for same := k.generation; len(b) > 0 && k.generation == same && k.state != closed; {
		var body []byte
		if body, b = k.framing.next(b); len(body) > 0 {
			c.look(n, k, body)
		}
	}
}

// look processes a piece of the body.
func (c *Client) look(n int, k *conn, b []byte) {
	c.count(n, k, b)
	if s := c.stamp(n); s != nil {
		s.scan(b, time.Now().UnixNano(), &c.at, &c.latency)
	}
	if c.o.IDs {
		c.ids[n].scan(b)
	}
	c.lookForDone(n, k, b)
}

// answer processes the start of a response.
func (c *Client) answer(k *conn, b []byte) {
	k.state = answered
	c.stats.Answered++
	if !bytes.HasPrefix(b, []byte("HTTP/1.1 200 ")) {
		c.stats.Refused++
	}
}

func (c *Client) count(n int, k *conn, b []byte) {
	if c.marker == nil {
		return
	}
	found, after := c.marker.count(b, k.marker)
	k.marker = after
	k.events += uint64(found)
	c.stats.Events += uint64(found)
	if found > 0 && c.o.OnEvents != nil {
		c.o.OnEvents(n, found)
	}
}

func (c *Client) lookForDone(n int, k *conn, b []byte) {
	if c.done == nil || k.isDone {
		return
	}
	end, after := c.done.next(b, k.done)
	if k.done = after; end >= 0 {
		c.finish(n, k)
	}
}

// finish records that a connection is done.
func (c *Client) finish(n int, k *conn) {
	if k.isDone {
		return
	}
	k.isDone, k.doneAfter = true, time.Now().UnixNano()-k.sent
	c.stats.Done++
	if c.o.OnDone != nil {
		c.o.OnDone(n)
	}
}
