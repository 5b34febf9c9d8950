package netconn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/limits"
	"go.uber.org/goleak"
)

// memory is a listener of connections in memory, each from an address that its client chooses.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Accept implements net.Listener.
func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (m *memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

// Addr implements net.Listener.
func (m *memory) Addr() net.Addr { return &net.TCPAddr{} }

// from is a connection from an address.
type from struct {
	net.Conn
	peer net.Addr
}

// RemoteAddr implements net.Conn.
func (f from) RemoteAddr() net.Addr { return f.peer }

// dial connects from an address.
func (m *memory) dial(address string) net.Conn {
	near, far := net.Pipe()
	m.conns <- from{near, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 4711))}
	return far
}

// secured is a listener with TLS that limits handshakes, and what it has accepted.
type secured struct {
	*memory
	handshakes *Handshakes
	listener   net.Listener
	accepted   chan net.Conn
	done       chan struct{}
}

func newSecured(t *testing.T, most, perClient int) *secured {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	proxy := netip.MustParseAddr("10.0.0.1")
	s := &secured{memory: newMemory(), accepted: make(chan net.Conn, 100), done: make(chan struct{})}
	connections := NewConnections(1000, log)
	s.handshakes = NewHandshakes(most, perClient, func(a netip.Addr) bool { return a == proxy }, connections)
	s.listener = Listen(s.memory, time.Minute, log).Counted(connections, true).
		Secure(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, s.handshakes)
	go func() {
		defer close(s.done)
		for {
			c, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.accepted <- c
		}
	}()
	return s
}

// end closes the listener, and waits for its goroutine.
func (s *secured) end() {
	s.listener.Close()
	<-s.done
	close(s.accepted)
	for c := range s.accepted {
		c.(*tls.Conn).NetConn().Close()
	}
}

// results returns how often handshakes have ended in each way.
func (s *secured) results() string {
	var all []string
	for _, r := range HandshakeResults {
		if n := s.handshakes.Ended(r); n > 0 {
			all = append(all, fmt.Sprint(n, " ", r))
		}
	}
	return strings.Join(all, ", ")
}

// connect does a handshake as a client.
func (s *secured) connect(address string) (*tls.Conn, error) {
	c := tls.Client(s.dial(address), &tls.Config{InsecureSkipVerify: true})
	err := c.Handshake()
	if err == nil {
		go c.Read(make([]byte, 1)) // tickets, which a pipe does not buffer
	}
	return c, err
}

// isClosed reports whether the gateway has closed a connection.
func isClosed(c net.Conn) bool {
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// TestHandshakesThatNeverEnd are ended after a while. Others connect meanwhile.
func TestHandshakesThatNeverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSecured(t, 100, 10)
		defer s.end()
		began := time.Now()
		var silent []net.Conn
		for range 10 {
			silent = append(silent, s.dial("192.0.2.1"))
		}
		half := s.dial("192.0.2.2")
		if _, err := half.Write([]byte("\x16\x03\x01\x02\x00\x01\x00\x01")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := s.handshakes.Count(); n != 11 {
			t.Errorf("%d handshakes go on, want 11", n)
		}
		if refused := s.dial("192.0.2.1"); !isClosed(refused) {
			t.Error("an eleventh of one address is not refused")
		}
		c, err := s.connect("192.0.2.3")
		if err != nil || time.Since(began) != 0 {
			t.Errorf("another one connects after %s: %v", time.Since(began), err)
		}
		defer c.NetConn().Close()
		for _, c := range append(silent, half) {
			if !isClosed(c) {
				t.Error("a silent connection is open")
			}
		}
		if took := time.Since(began); took != HandshakeTimeout {
			t.Errorf("silent connections were closed after %s", took)
		}
		synctest.Wait()
		if got, want := s.results(), "1 completed, 11 late, 1 refused"; got != want || s.handshakes.Count() != 0 {
			t.Errorf("%s, %d go on; want %s", got, s.handshakes.Count(), want)
		}
	})
}

// TestTrickledHandshake: bytes that arrive one by one do not extend the time.
func TestTrickledHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSecured(t, 100, 10)
		defer s.end()
		c, began := s.dial("192.0.2.1"), time.Now()
		n := 0
		for ; ; n++ {
			b := []byte{0}
			if n < 5 {
				b = []byte("\x16\x03\x01\x40\x00")[n : n+1]
			}
			if _, err := c.Write(b); err != nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took < HandshakeTimeout || took > HandshakeTimeout+time.Second {
			t.Errorf("closed after %s and %d bytes", took, n)
		}
	})
}

// TestLongHandshake: a client cannot make the gateway buffer much before it is known.
func TestLongHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSecured(t, 100, 10)
		defer s.end()
		c, sent := s.dial("192.0.2.1"), 0
		// A hello of 65,532 bytes, in records of 16 KiB, and a second one.
		hello := append([]byte{1, 0, 0xff, 0xfc}, make([]byte, 0xfffc)...)
		all := append(hello, hello...)
		for len(all) > 0 {
			part := all[:min(len(all), 16<<10)]
			all = all[len(part):]
			n, err := c.Write(append([]byte{0x16, 3, 1, byte(len(part) >> 8), byte(len(part))}, part...))
			if sent += n; err != nil {
				break
			}
		}
		if sent > handshakeBytes+16<<10 || len(all) == 0 {
			t.Errorf("the gateway has read %d bytes", sent)
		}
	})
}

// TestManyHandshakes: beyond the limit in all, the oldest one gives way.
func TestManyHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSecured(t, 20, 10)
		defer s.end()
		var silent []net.Conn
		for i := range 20 {
			silent = append(silent, s.dial(fmt.Sprintf("192.0.2.%d", 1+i/5)))
			synctest.Wait()
		}
		c, err := s.connect("198.51.100.1")
		if err != nil {
			t.Fatal(err)
		}
		defer c.NetConn().Close()
		if !isClosed(silent[0]) {
			t.Error("the oldest handshake goes on")
		}
		synctest.Wait()
		if got, want := s.results(), "1 completed, 1 displaced"; got != want || s.handshakes.Count() != 19 {
			t.Errorf("%s, and %d go on; want %s", got, s.handshakes.Count(), want)
		}
	})
}

// TestHandshakesOfAProxy are only limited together with all others.
func TestHandshakesOfAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSecured(t, 100, 10)
		defer s.end()
		for range 30 {
			s.dial("10.0.0.1")
		}
		synctest.Wait()
		if n := s.handshakes.Count(); n != 30 {
			t.Errorf("%d handshakes of a proxy go on, want 30", n)
		}
		s.handshakes.Reconfigure(20, 5)
		c, err := s.connect("192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		defer c.NetConn().Close()
		synctest.Wait()
		if n := s.handshakes.Count(); n != 19 {
			t.Errorf("%d handshakes go on after a reload, want 19", n)
		}
	})
}

// TestHandshakesTakeTurns: no more than half of the processors compute, and a client that does not answer has no turn.
func TestHandshakesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSecured(t, 100, 10)
		defer s.end()
		var turns []*limits.Claim
		for c := s.handshakes.turns.TryTake(limits.Client{1}, 1); c != nil; c = s.handshakes.turns.TryTake(limits.Client{1}, 1) {
			turns = append(turns, c)
		}
		connected := make(chan error)
		go func() {
			c, err := s.connect("192.0.2.1")
			defer c.NetConn().Close()
			connected <- err
		}()
		time.Sleep(time.Second)
		select {
		case err := <-connected:
			t.Fatalf("a handshake without a turn: %v", err)
		default:
		}
		for _, c := range turns {
			c.Release()
		}
		if err := <-connected; err != nil {
			t.Error(err)
		}
		for range 9 {
			s.dial("192.0.2.1") // each waits for its client
		}
		synctest.Wait()
		if n, _ := s.handshakes.turns.Now(); n != 0 {
			t.Errorf("%d turns are taken by handshakes that wait", n)
		}
	})
}

// TestClosedSecureListener: what has begun before the listener beneath was closed is still accepted, and nothing is after that.
func TestClosedSecureListener(t *testing.T) {
	defer goleak.VerifyNone(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSecured(t, 100, 10)
		raw := s.dial("192.0.2.1")
		synctest.Wait()
		s.memory.Close()
		c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
		if err := c.HandshakeContext(context.Background()); err != nil {
			t.Fatal(err)
		}
		<-s.done
		if n := len(s.accepted); n != 1 {
			t.Errorf("%d connections were accepted, want 1", n)
		}
		raw.Close()
		s.end()
	})
}

// TestHTTPWithoutTLS: a client that forgot TLS is told so.
func TestHTTPWithoutTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSecured(t, 100, 10)
		defer s.end()
		c := s.dial("192.0.2.1")
		go io.WriteString(c, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
		if answer, _ := io.ReadAll(c); !strings.HasPrefix(string(answer), "HTTP/1.0 400") || !strings.Contains(string(answer), "https://") {
			t.Errorf("%q", answer)
		}
	})
}
