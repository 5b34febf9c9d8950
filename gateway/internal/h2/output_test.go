package h2

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// reader is a client that has opened one stream and all windows, and reads when it is told to.
type reader struct {
	net.Conn
	stream owned
	all    []byte // to be written
	sent   int
	gone   bool
}

// openReader opens the connection of a client that has read the answer to its request as far as there is one.
func openReader(t *testing.T, r *rig, streams <-chan owned) *reader {
	t.Helper()
	conn, err := r.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	c := client{t: t, Conn: conn, Framer: http2.NewFramer(conn, nil)}
	c.encoder = hpack.NewEncoder(&c.fields)
	out := &reader{Conn: conn, all: bytes.Repeat([]byte("x"), 4<<20)}
	t.Cleanup(func() { conn.Close(); synctest.Wait() })
	go func() {
		c.must(c.write(http2.ClientPreface), c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow}))
		c.must(c.WriteWindowUpdate(0, maxWindow-initialWindow))
		c.request(1, "GET", "/", true)
	}()
	synctest.Wait()
	out.take(1<<10, 10*time.Millisecond) // the settings and the head of the answer
	select {
	case out.stream = <-streams:
	default:
		t.Fatal("there is no stream")
	}
	return out
}

// fill writes as much as the connection takes without its client.
func (r *reader) fill(t *testing.T) (taken int) {
	t.Helper()
	for {
		n, err := r.stream.Write(r.all[:1<<20])
		r.sent, taken = r.sent+n, taken+n
		if r.gone = err != nil && slices.Contains(r.stream.told(), Gone); r.gone {
			return taken
		}
		if !errors.Is(err, ErrBlocked) {
			t.Fatalf("%d bytes were taken, %v", n, err)
		}
		r.stream.Await(true)
		told := r.stream.told()
		if r.gone = slices.Contains(told, Gone); r.gone || len(told) == 0 {
			return taken
		}
	}
}

// take reads so many bytes, as far as they come within a time.
func (r *reader) take(most int, within time.Duration) (n int) {
	_ = r.SetReadDeadline(time.Now().Add(within)) // fails if the connection was closed
	n, _ = io.ReadFull(r, make([]byte, most))
	return n
}

// TestSlowConnectionsHoldLittle: one whose client takes nothing, or little, has little room, and no part of the budget.
func TestSlowConnectionsHoldLittle(t *testing.T) {
	const most = 2 * (outputFirst + littleData)
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan owned, 1)
		r := newRig(t, detaching(streams))
		c := openReader(t, r, streams)
		c.stream.writes(t, "x", 1)
		time.Sleep(2 * quickWrite)
		if n := c.fill(t); n > most {
			t.Errorf("a connection that is not read holds %d bytes", n)
		}
		for range 100 {
			held := c.sent
			time.Sleep(3 * time.Second)
			c.take(4000, time.Second)
			if c.fill(t); c.sent-held > most {
				t.Fatalf("a connection that is read slowly takes %d bytes at once", c.sent-held)
			}
		}
		if taken, _ := r.outputs.Now(); taken != 0 {
			t.Errorf("a connection that is read slowly has %d bytes of the budget", taken)
		}
	})
}

// TestOutputsShareABudget: connections that are read quickly have much room each, as far as the budget goes; one that has
// become slow gives its part back.
func TestOutputsShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan owned, 1)
		r := newRig(t, detaching(streams))
		var all []*reader
		for i := range 3 {
			c := openReader(t, r, streams)
			all = append(all, c)
			most := 0
			for range 20 {
				n := c.fill(t)
				most = max(most, n)
				c.take(n, time.Millisecond)
			}
			if wide := most > outputFull/2; wide != (i < 2) {
				t.Errorf("connection %d takes %d bytes at once", i, most)
			}
			c.fill(t)
		}
		if taken, _ := r.outputs.Now(); taken != 4*outputFull {
			t.Errorf("%d bytes of the budget are taken, want all of one client", taken)
		}
		for range 100 { // 13 KB a second
			time.Sleep(time.Second)
			all[0].take(outputFirst, time.Second/4)
			all[0].fill(t)
			if n := all[1].take(1<<20, time.Millisecond); n > 0 {
				all[1].fill(t)
			}
		}
		if taken, _ := r.outputs.Now(); taken != 2*outputFull {
			t.Errorf("%d bytes of the budget are taken once one of two connections is slow", taken)
		}
		for _, c := range all {
			c.Close()
		}
		synctest.Wait()
		if taken, _ := r.outputs.Now(); taken != 0 {
			t.Errorf("%d bytes of the budget are taken without a connection", taken)
		}
	})
}

// TestIdleOutputsHoldNothing: a connection that has sent all has no part of the budget.
func TestIdleOutputsHoldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan owned, 1)
		r := newRig(t, detaching(streams))
		c := openReader(t, r, streams)
		for range 20 {
			c.take(c.fill(t), time.Millisecond)
		}
		if taken, _ := r.outputs.Now(); taken != 2*outputFull {
			t.Errorf("%d bytes of the budget are taken by a client that is quick", taken)
		}
		c.stream.Await(false)
		c.take(1<<20, time.Millisecond)
		c.stream.told()
		c.stream.writes(t, "x", 1)
		c.take(1<<20, time.Millisecond)
		if taken, _ := r.outputs.Now(); taken != 0 {
			t.Errorf("%d bytes of the budget are taken by a connection that has sent all", taken)
		}
	})
}

// TestSlowConnectionsWithMuch: one that holds a part of the budget, and is slower than the minimum rate, is closed. One that
// holds little is not.
func TestSlowConnectionsWithMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan owned, 1)
		r := newRig(t, detaching(streams))
		slow := func(c *reader) (closed bool) {
			for range 30 {
				time.Sleep(3 * time.Second)
				c.take(1000, time.Second)
				if c.fill(t); c.gone {
					return true
				}
			}
			return false
		}
		little := openReader(t, r, streams)
		little.stream.writes(t, "x", 1)
		time.Sleep(2 * quickWrite)
		if little.fill(t); slow(little) {
			t.Error("a slow connection that holds little was closed")
		}
		much := openReader(t, r, streams)
		for range 20 {
			much.take(much.fill(t), time.Millisecond)
		}
		much.fill(t)
		if !slow(much) {
			t.Error("a slow connection that holds much was not closed")
		}
	})
}
