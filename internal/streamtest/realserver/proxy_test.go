package realserver_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// patience is the time limit of expected events, and quiet the wait for
// unexpected ones.
const (
	patience = 10 * time.Second
	quiet    = 50 * time.Millisecond
)

// pair is a connection through a proxy, with access to both ends.
type pair struct {
	*realserver.Proxy
	t                *testing.T
	listener         net.Listener
	client, upstream net.Conn
}

func newPair(t *testing.T) *pair {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &pair{Proxy: realserver.NewProxy(t, l.Addr().String()), t: t, listener: l}
	p.client, p.upstream = p.dial(), p.accept()
	// The system accepts before the proxy knows: only bytes show that it is there.
	p.write(p.client, "!")
	p.expect(p.upstream, "!")
	return p
}

func (p *pair) dial() net.Conn {
	p.t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	return c
}

func (p *pair) accept() net.Conn {
	p.t.Helper()
	p.listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	c, err := p.listener.Accept()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	return c
}

func (p *pair) write(c net.Conn, text string) {
	p.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		p.t.Fatal(err)
	}
}

// expect reads that text.
func (p *pair) expect(c net.Conn, text string) {
	p.t.Helper()
	got := make([]byte, len(text))
	c.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		p.t.Fatalf("read %q (%v): want %q", got, err, text)
	}
}

// silent reads nothing for a while.
func (p *pair) silent(c net.Conn) {
	p.t.Helper()
	c.SetReadDeadline(time.Now().Add(quiet))
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatalf("read %d bytes (%v): want nothing", n, err)
	}
}

// ends reads until the connection ends, and returns how.
func (p *pair) ends(c net.Conn) error {
	p.t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	_, err := c.Read(make([]byte, 1))
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatalf("got %v: want the end of the connection", err)
	}
	return err
}

func TestCarriesBothWaysAndCounts(t *testing.T) {
	p := newPair(t)
	p.write(p.client, "question")
	p.expect(p.upstream, "question")
	p.write(p.upstream, "answer")
	p.expect(p.client, "answer")
	if up, down := p.Bytes(realserver.Upstream), p.Bytes(realserver.Client); up != 9 || down != 6 {
		t.Errorf("%d bytes up and %d down: want 9 and 6", up, down)
	}
	if p.Accepted() != 1 || p.Open() != 1 {
		t.Errorf("%d accepted, %d open: want one", p.Accepted(), p.Open())
	}
}

// TestEndsAsTheEndsDo: the proxy by itself adds no fault.
func TestEndsAsTheEndsDo(t *testing.T) {
	p := newPair(t)
	p.write(p.client, "last words")
	p.client.(*net.TCPConn).CloseWrite()
	p.expect(p.upstream, "last words")
	if err := p.ends(p.upstream); err != io.EOF {
		t.Errorf("the upstream saw %v: want an orderly end", err)
	}
	p.write(p.upstream, "reply")
	p.upstream.Close()
	p.expect(p.client, "reply")
	if err := p.ends(p.client); err != io.EOF {
		t.Errorf("the client saw %v: want an orderly end", err)
	}
}

func TestResetIsPassedOn(t *testing.T) {
	p := newPair(t)
	p.upstream.(*net.TCPConn).SetLinger(0)
	p.upstream.Close()
	if err := p.ends(p.client); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client saw %v: want a reset", err)
	}
}

func TestCut(t *testing.T) {
	p := newPair(t)
	p.Cut()
	if p.Open() != 0 {
		t.Errorf("%d connections are open after a cut", p.Open())
	}
	for _, c := range []net.Conn{p.client, p.upstream} {
		if err := p.ends(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("one side saw %v: want a reset", err)
		}
	}
	again, upstream := p.dial(), p.accept()
	p.write(again, "back")
	p.expect(upstream, "back")
}

func TestStallHoldsEverythingBack(t *testing.T) {
	p := newPair(t)
	p.Stall()
	p.write(p.client, "held")
	p.write(p.upstream, "back")
	p.silent(p.upstream)
	p.silent(p.client)
	late := p.dial()
	p.write(late, "late")
	p.silent(late)

	p.Heal()
	p.expect(p.upstream, "held")
	p.expect(p.client, "back")
	p.expect(p.accept(), "late")
}

func TestStalledConnectionsCanBeCut(t *testing.T) {
	p := newPair(t)
	p.Stall()
	hanging := p.dial()
	p.write(p.client, "lost")
	for p.Open() < 2 { // the second one is taken by another goroutine
		p.silent(hanging)
	}
	p.Cut()
	for _, c := range []net.Conn{p.client, hanging} {
		if err := p.ends(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a connection saw %v: want a reset", err)
		}
	}
}

func TestRefuse(t *testing.T) {
	p := newPair(t)
	p.Refuse()
	if c, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialled %v (%v): want it to be refused", c, err)
	}
	p.write(p.client, "still here")
	p.expect(p.upstream, "still here")
	p.Heal()
	again := p.dial()
	p.write(again, "again")
	p.expect(p.accept(), "again")
}

func TestDelay(t *testing.T) {
	p := newPair(t)
	const d = 60 * time.Millisecond
	p.Delay(d)
	began := time.Now()
	p.write(p.client, "slow")
	p.expect(p.upstream, "slow")
	if took := time.Since(began); took < d {
		t.Errorf("it took %v: want at least %v", took, d)
	}
}

// TestDelayIsNotABottleneck: bytes sent together arrive together.
func TestDelayIsNotABottleneck(t *testing.T) {
	p := newPair(t)
	p.Delay(250 * time.Millisecond)
	began := time.Now()
	big := bytes.Repeat([]byte("x"), 40*16<<10) // 40 reads at least
	go p.client.Write(big)
	p.expect(p.upstream, string(big))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v: want about one delay of 250 ms, not one for each read", took)
	}
}

func TestTrickle(t *testing.T) {
	p := newPair(t)
	p.Trickle(1000)
	began := time.Now()
	p.write(p.client, string(make([]byte, 150)))
	p.expect(p.upstream, string(make([]byte, 150)))
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("150 bytes took %v: want 50 at once, and 50 after each 50 ms", took)
	}
	p.write(p.client, string(make([]byte, 100_000))) // practically forever
	p.Heal()
	p.expect(p.upstream, string(make([]byte, 100_000)))
}

func TestHalfClose(t *testing.T) {
	p := newPair(t)
	p.HalfClose(realserver.Client)
	if err := p.ends(p.client); err != io.EOF {
		t.Errorf("the client saw %v: want the end of the stream", err)
	}
	p.write(p.upstream, "for nobody")
	p.write(p.client, "still carried")
	p.expect(p.upstream, "still carried")
	p.Heal()
	if err := p.ends(p.client); err != io.EOF {
		t.Errorf("healed, the client saw %v: want nothing after the end of the stream", err)
	}
}

func TestHalfCloseUpstream(t *testing.T) {
	p := newPair(t)
	p.HalfClose(realserver.Upstream)
	if err := p.ends(p.upstream); err != io.EOF {
		t.Errorf("the upstream saw %v: want the end of the stream", err)
	}
	p.write(p.upstream, "still carried")
	p.expect(p.client, "still carried")
}

func TestSetTarget(t *testing.T) {
	p := newPair(t)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	p.SetTarget(other.Addr().String())
	p.write(p.client, "old")
	p.expect(p.upstream, "old")
	fresh := p.dial()
	arrived, err := other.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer arrived.Close()
	p.write(fresh, "new")
	p.expect(arrived, "new")
}

func TestTargetThatIsNotThere(t *testing.T) {
	p := newPair(t)
	p.listener.Close()
	c, err := net.Dial("tcp", p.Addr()) // the reset may come as early as here
	if err == nil {
		defer c.Close()
		err = p.ends(c)
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client saw %v: want a reset", err)
	}
}
