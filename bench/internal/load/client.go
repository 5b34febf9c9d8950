package load

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Client is one loop over many connections, which are named by the numbers that
// Connect gives them: 0, 1, 2 and so on. It is owned by one goroutine, hooks
// included.
type Client struct {
	o      Options
	server netip.AddrPort
	marker *marker // nil: no events are counted
	done   *marker // nil: only the end of the response is awaited
	at     marker  // of the text before a time
	poll   *poll

	conns   []conn
	stamps  []stamp  // of every Sample-th connection
	ids     []lastID // of all, if they are requested
	made    int      // connections started so far, including reconnections
	stats   Stats
	latency Histogram
	buf     []byte
}

// readSize is how much is read in one call: enough for the contents of a socket.
const readSize = 256 << 10

// parseAddress returns the address of a server.
func parseAddress(text string) (netip.AddrPort, error) {
	server, err := netip.ParseAddrPort(text)
	if err != nil || !server.Addr().Is4() {
		return server, fmt.Errorf("address %q: want an IPv4 number and a port, such as 127.0.0.1:8080", text)
	}
	return server, nil
}

// New returns a Client without connections.
func New(o Options) (*Client, error) {
	server, err := parseAddress(o.Address)
	if err != nil {
		return nil, err
	}
	if o.InFlight == 0 {
		o.InFlight = 256
	}
	if len(o.Stamp) == 0 {
		o.Stamp = defaultStamp
	}
	if len(o.Marker) > longest || len(o.Done) > longest || len(o.Stamp) > longest {
		return nil, fmt.Errorf("markers of %d, %d and %d bytes: want at most %d", len(o.Marker), len(o.Done), len(o.Stamp), longest)
	}
	c := &Client{o: o, server: server, at: newMarker(o.Stamp), buf: make([]byte, readSize)}
	if len(o.Marker) > 0 {
		m := newMarker(o.Marker)
		c.marker = &m
	}
	if len(o.Done) > 0 {
		m := newMarker(o.Done)
		c.done = &m
	}
	c.poll, err = newPoll()
	return c, err
}

// SetAddress changes Options.Address for the connections that are started from now on.
func (c *Client) SetAddress(address string) error {
	server, err := parseAddress(address)
	if err == nil {
		c.server = server
	}
	return err
}

// Connect starts one more connection and returns its number. It is made, and the
// request sent, in Poll.
func (c *Client) Connect(r Request) (int, error) {
	n := len(c.conns)
	c.conns = append(c.conns, conn{socket: none})
	if c.o.Sample > 0 && n%c.o.Sample == 0 {
		c.stamps = append(c.stamps, stamp{})
	}
	if c.o.IDs {
		c.ids = append(c.ids, lastID{})
	}
	return n, c.dial(n, r)
}

// Reconnect starts a closed connection again under its number. Its counts
// continue; its last ID stays until there is another.
func (c *Client) Reconnect(n int, r Request) error {
	k := &c.conns[n]
	if k.state != closed {
		return fmt.Errorf("connection %d is still open", n)
	}
	*k = conn{socket: none, generation: k.generation + 1, events: k.events, bytes: k.bytes}
	if s := c.stamp(n); s != nil {
		*s = stamp{}
	}
	if c.o.IDs {
		c.ids[n].tail = c.ids[n].tail[:0]
	}
	return c.dial(n, r)
}

func (c *Client) dial(n int, r Request) error {
	k := &c.conns[n]
	s, err := connect(c.source(), c.server, r.ReceiveBuffer)
	if err != nil {
		return fmt.Errorf("connection %d of %d so far: %w", n, c.made, err)
	}
	c.made++
	k.socket, k.state, k.request, k.held, k.stalled = s, connecting, r.Bytes, r.Held, r.Stalled
	return c.poll.add(s, n, k.generation)
}

// source is the address of the next connection; the zero value leaves it to
// the system.
func (c *Client) source() netip.Addr {
	const each, addresses = 10_000, 250
	if !c.server.Addr().IsLoopback() {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + (c.o.Earlier+c.made)/each%addresses)})
}

// Release sends the request of a connection that was Held.
func (c *Client) Release(n int) {
	k := &c.conns[n]
	if k.held = false; k.state == held {
		c.send(n, k)
	}
}

// Stall stops reading from a connection; Resume starts again.
func (c *Client) Stall(n int) { c.setStalled(n, true) }

// Resume reads again after Stall, or after a Request that was Stalled.
func (c *Client) Resume(n int) { c.setStalled(n, false) }

func (c *Client) setStalled(n int, stalled bool) {
	k := &c.conns[n]
	if k.stalled = stalled; k.state == sent || k.state == answered {
		c.watch(n, k)
	}
}

// Hangup closes a connection in order.
func (c *Client) Hangup(n int) { c.drop(&c.conns[n]) }

// Reset closes a connection as a crash or a broken link does: with RST.
func (c *Client) Reset(n int) {
	if k := &c.conns[n]; k.state != closed {
		k.socket.linger0()
		c.drop(k)
	}
}

// HangupAll closes all connections in order.
func (c *Client) HangupAll() {
	for n := range c.conns {
		c.Hangup(n)
	}
}

func (c *Client) drop(k *conn) {
	if k.state != closed {
		k.socket.close()
		k.socket, k.state, k.request = none, closed, nil
	}
}

// Close closes all connections and the loop.
func (c *Client) Close() error {
	c.HangupAll()
	return c.poll.close()
}

// errSilent: see Open.
var errSilent = errors.New("no answer from the server for 30 s")

// Open makes n connections and returns once all have been answered, or, if they
// are Held or Stalled, connected. Those that are lost or refused are in Stats.
func (c *Client) Open(n int, r Request) error {
	return c.begin(n, r, func(int) error {
		_, err := c.Connect(r)
		return err
	})
}

// OpenEach is Open with a request of its own for each connection. Either all of them, or
// none, are Held or Stalled.
func (c *Client) OpenEach(requests []Request) error {
	if len(requests) == 0 {
		return nil
	}
	return c.begin(len(requests), requests[0], func(n int) error {
		_, err := c.Connect(requests[n])
		return err
	})
}

// Reopen reopens all connections, which must be closed, each with its last ID. It
// returns when Open would.
func (c *Client) Reopen(r Request) error {
	return c.begin(len(c.conns), r, func(n int) error {
		again := r
		if id := c.LastID(n); id != "" {
			again.Bytes = With(r.Bytes, "Last-Event-ID", id)
		}
		return c.Reconnect(n, again)
	})
}

// begin calls one for 0 to n-1, but never runs far ahead of the answers.
func (c *Client) begin(n int, r Request, one func(int) error) error {
	begun, before, silent := 0, c.stats, time.Now()
	for {
		over := settled(c.stats.Since(before), r)
		if over >= n {
			return nil
		}
		for ; begun < n && begun-over < c.o.InFlight; begun++ {
			if err := one(begun); err != nil {
				return err
			}
		}
		events, err := c.Poll(time.Second)
		switch {
		case err != nil:
			return err
		case events > 0:
			silent = time.Now()
		case time.Since(silent) > 30*time.Second:
			return fmt.Errorf("%d of %d connections: %w", over, n, errSilent)
		}
	}
}

// settled is the number of connections for which Open no longer waits.
func settled(s Stats, r Request) int {
	if r.Held || r.Stalled {
		return int(s.Connected)
	}
	return int(s.Answered)
}

// Stats returns the sums so far.
func (c *Client) Stats() Stats { return c.stats }

// Latency has the measurements of the sampled connections; it may be set to its
// zero value between two measurements.
func (c *Client) Latency() *Histogram { return &c.latency }

// Len is the number of connections that Connect has started, including closed ones.
func (c *Client) Len() int { return len(c.conns) }

// Events returns how many events a connection has received.
func (c *Client) Events(n int) uint64 { return c.conns[n].events }

// Bytes returns how many bytes a connection has received.
func (c *Client) Bytes(n int) uint64 { return c.conns[n].bytes }

// Alive reports whether a connection is open, or being opened.
func (c *Client) Alive(n int) bool { return c.conns[n].state != closed }

// DoneAfter returns how long after its request a connection was done, or 0 if it
// is not.
func (c *Client) DoneAfter(n int) time.Duration { return time.Duration(c.conns[n].doneAfter) }

// LastID returns the last event ID that a connection has received; "" if there
// was none. Options.IDs must be set.
func (c *Client) LastID(n int) string { return string(c.ids[n].id) }

// stamp is nil for a connection that is not sampled.
func (c *Client) stamp(n int) *stamp {
	if c.o.Sample == 0 || n%c.o.Sample != 0 {
		return nil
	}
	return &c.stamps[n/c.o.Sample]
}
