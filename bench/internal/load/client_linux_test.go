package load

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

var get = []byte("GET /events HTTP/1.1\r\nHost: test\r\n\r\n")

// events answers with n events, and ends or stays according to stay.
func events(n int, stay bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var whole []byte // a chunk for some events: none ends inside a marker
		for i := range n {
			whole = fmt.Appendf(whole, "event: upsert\ndata: {\"at\":%d,\"pad\":%q}\nid: w@e-%d\n\n", time.Now().UnixNano(), strings.Repeat("x", i%500), i)
			if i%7 == 0 || i == n-1 {
				w.Write(whole)
				http.NewResponseController(w).Flush()
				whole = whole[:0]
			}
		}
		fmt.Fprintf(w, "event: end_of_snapshot\ndata: {}\nid: %s!\n\n", r.Header.Get("Last-Event-ID"))
		http.NewResponseController(w).Flush()
		if stay {
			<-r.Context().Done()
		}
	}
}

func serve(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.Marker == nil {
		o.Marker = []byte("\nevent: upsert\n")
	}
	o.Done = []byte("\nevent: end_of_snapshot\n")
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// await polls until the condition holds.
func await(t *testing.T, c *Client, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20 s: %+v", what, c.Stats())
		}
		if _, err := c.Poll(10 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryEventIsCountedOnce on each connection, with its latency, its last ID
// and the time until it was done.
func TestEveryEventIsCountedOnce(t *testing.T) {
	const conns, each = 20, 1000
	hooked := 0
	c := newClient(t, Options{Address: serve(t, events(each, true)), Sample: 4, IDs: true, OnEvents: func(_, n int) { hooked += n }})
	if err := c.Open(conns, Request{Bytes: With(get, "Last-Event-ID", "w@e-5")}); err != nil {
		t.Fatal(err)
	}
	await(t, c, "all are done", func() bool { return c.Stats().Done == conns })
	for n := range conns {
		if c.Events(n) != each || c.LastID(n) != "w@e-5!" || c.DoneAfter(n) <= 0 || !c.Alive(n) {
			t.Errorf("connection %d: %d events, last ID %q, done after %v, alive %t", n, c.Events(n), c.LastID(n), c.DoneAfter(n), c.Alive(n))
		}
	}
	s := c.Stats()
	if s.Events != conns*each || hooked != conns*each || s.Answered != conns || s.Refused+s.Lost != 0 {
		t.Errorf("%+v, %d by the hook: want %d events", s, hooked, conns*each)
	}
	if l := c.Latency(); l.Count() != conns/4*each || l.Max() > time.Minute {
		t.Errorf("%d latencies, at most %v: want %d", l.Count(), l.Max(), conns/4*each)
	}
}

// TestEnds: the end of a response is a loss, or the awaited end; a refusal is
// counted; an unreachable server is a loss.
func TestEnds(t *testing.T) {
	address := serve(t, events(1, false))
	closing := With(get, "Connection", "close")
	for _, c := range []struct {
		name, address string
		request       []byte
		o             Options
		want          Stats
	}{
		{"lost", address, closing, Options{}, Stats{Events: 1, Connected: 1, Answered: 1, Done: 1, Lost: 1}},
		{"wanted", address, closing, Options{EndIsDone: true}, Stats{Events: 1, Connected: 1, Answered: 1, Done: 1}},
		{"refused", serve(t, http.NotFoundHandler()), closing, Options{}, Stats{Connected: 1, Answered: 1, Refused: 1, Lost: 1}},
		{"nobody", unused(t), get, Options{}, Stats{Connected: 1, Answered: 1, Lost: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ended := false
			c.o.Address, c.o.OnEnd = c.address, func(int, error) { ended = true }
			client := newClient(t, c.o)
			if err := client.Open(1, Request{Bytes: c.request}); err != nil {
				t.Fatal(err)
			}
			await(t, client, "it ends", func() bool { return ended })
			got := client.Stats()
			if got.Bytes, got.Reads = 0, 0; got != c.want {
				t.Errorf("%+v\nwant %+v", got, c.want)
			}
		})
	}
}

// unused returns an address without a listener.
func unused(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestStall: a stalled connection reads nothing until it resumes, and then
// everything; meanwhile the server is held up.
func TestStall(t *testing.T) {
	const each = 30_000 // about 9 MB, more than any socket holds
	c := newClient(t, Options{Address: serve(t, events(each, true))})
	if err := c.Open(1, Request{Bytes: get, Stalled: true, ReceiveBuffer: 4096}); err != nil {
		t.Fatal(err)
	}
	if err := c.Open(1, Request{Bytes: get}); err != nil {
		t.Fatal(err)
	}
	await(t, c, "the other is done", func() bool { return c.DoneAfter(1) > 0 })
	if c.Bytes(0) != 0 {
		t.Fatalf("the stalled connection has read %d bytes", c.Bytes(0))
	}
	c.Resume(0)
	await(t, c, "it reads", func() bool { return c.Events(0) > 100 })
	c.Stall(0)
	before := c.Events(0)
	for range 5 {
		if _, err := c.Poll(time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if c.Events(0) != before {
		t.Fatal("it reads on, although it is stalled")
	}
	c.Resume(0)
	await(t, c, "it is done", func() bool { return c.DoneAfter(0) > 0 })
	if c.Events(0) != each {
		t.Errorf("%d events, want %d", c.Events(0), each)
	}
}

// TestHeld: held connections send nothing until they are released.
func TestHeld(t *testing.T) {
	c := newClient(t, Options{Address: serve(t, events(3, true))})
	if err := c.Open(5, Request{Bytes: get, Held: true}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := c.Poll(time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s.Connected != 5 || s.Bytes != 0 {
		t.Fatalf("%+v: want 5 connected, and nothing sent", s)
	}
	for n := range 5 {
		c.Release(n)
	}
	await(t, c, "all are done", func() bool { return c.Stats().Done == 5 })
}

// TestHangupAndReset: the server sees the kind of end, and the number can be
// reused.
func TestHangupAndReset(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := newClient(t, Options{Address: l.Addr().String()})
	for _, end := range []struct {
		name string
		do   func(int)
		want error
	}{{"hang-up", c.Hangup, nil}, {"reset", c.Reset, syscall.ECONNRESET}} {
		if err := again(c); err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		if _, err := server.Write([]byte("HTTP/1.1 200 OK\r\n\r\nevent: upsert\n")); err != nil {
			t.Fatal(err)
		}
		before := c.Events(0)
		await(t, c, "an event", func() bool { return c.Events(0) > before })
		end.do(0)
		if _, err := readAll(server); !errors.Is(err, end.want) || c.Alive(0) {
			t.Errorf("%s: the server sees %v, want %v; alive %t", end.name, err, end.want, c.Alive(0))
		}
	}
	if s := c.Stats(); s.Lost != 0 || s.Connected != 2 {
		t.Errorf("%+v: want no loss of 2 connections", s)
	}
}

// again opens connection 0, for the first time or again.
func again(c *Client) error {
	if c.Len() == 0 {
		_, err := c.Connect(Request{Bytes: get})
		return err
	}
	return c.Reconnect(0, Request{Bytes: get})
}

// readAll returns the number of bytes before the end, and its error, which is
// nil for an orderly end.
func readAll(conn net.Conn) (n int, err error) {
	for b := make([]byte, 1000); ; {
		k, err := conn.Read(b)
		if n += k; err != nil {
			if err.Error() == "EOF" {
				err = nil
			}
			return n, err
		}
	}
}

// TestTwoSources: connections come from more than one address of loopback, as one
// has too few ports.
func TestTwoSources(t *testing.T) {
	seen := make(chan string, 2)
	h := func(_ http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		seen <- host
	}
	c := newClient(t, Options{Address: serve(t, http.HandlerFunc(h))})
	for _, made := range []int{0, 10_000} {
		c.made = made
		if err := c.Open(1, Request{Bytes: get}); err != nil {
			t.Fatal(err)
		}
		if got, want := <-seen, fmt.Sprintf("127.0.0.%d", 1+made/10_000); got != want {
			t.Errorf("connection %d comes from %s, want %s", made, got, want)
		}
	}
}

// TestReopen: each reconnects with its last ID.
func TestReopen(t *testing.T) {
	c := newClient(t, Options{Address: serve(t, events(10, true)), IDs: true})
	if err := c.Open(300, Request{Bytes: With(get, "Last-Event-ID", "w@e-9")}); err != nil {
		t.Fatal(err)
	}
	for times := 1; times <= 3; times++ {
		await(t, c, "all are done", func() bool { return c.Stats().Done == uint64(300*times) })
		if want := "w@e-9" + strings.Repeat("!", times); c.LastID(299) != want {
			t.Fatalf("last ID %q, want %q", c.LastID(299), want)
		}
		c.HangupAll()
		if err := c.Reopen(Request{Bytes: get}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusedOptions(t *testing.T) {
	for _, o := range []Options{
		{Address: "localhost:80"}, {Address: "[::1]:80"}, {Address: ""},
		{Address: "127.0.0.1:80", Marker: make([]byte, 256)},
	} {
		if c, err := New(o); err == nil {
			c.Close()
			t.Errorf("%+v: no error", o)
		}
	}
}
