package netconn

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

const patience = 10 * time.Second

func TestPatientConnWaitsWhileBytesMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go func() {
			one := make([]byte, 1)
			for range 20 {
				time.Sleep(patience - time.Millisecond)
				io.ReadFull(far, one)
			}
		}()
		n, err := (&StallTimeoutConn{Conn: near, Timeout: patience}).Write(make([]byte, 20))
		if n != 20 || err != nil {
			t.Errorf("20 bytes to a reader of one byte every 9.999 s: wrote %d, %v", n, err)
		}
	})
}

func TestPatientConnEndsWhenNothingMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go io.ReadFull(far, make([]byte, 7))
		began := time.Now()
		n, err := (&StallTimeoutConn{Conn: near, Timeout: patience}).Write(make([]byte, 20))
		if n != 7 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d, %v: want 7 and a missed deadline", n, err)
		}
		if took := time.Since(began); took < patience || took > patience+patience/ChecksPerTimeout {
			t.Errorf("gave up after %s, want %s and at most 1/%d more", took, patience, ChecksPerTimeout)
		}
	})
}

// HTTP/2 writes again after a missed deadline if any byte had moved before it.
func TestPatientConnIsPatientOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go io.ReadFull(far, make([]byte, 7))
		conn := &StallTimeoutConn{Conn: near, Timeout: patience}
		conn.Write(make([]byte, 20))
		began := time.Now()
		n, err := conn.Write(make([]byte, 13))
		if took := time.Since(began); n != 0 || err == nil || took != 0 {
			t.Errorf("after a write that gave up: wrote %d, %v, after %s", n, err, took)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("after a write that gave up: reads go on")
		}
	})
}

func TestPatientConnTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _ := net.Pipe()
		const odd = 10*time.Second + 7
		began := time.Now()
		(&StallTimeoutConn{Conn: near, Timeout: odd}).Write([]byte("x"))
		if took := time.Since(began); took != odd {
			t.Errorf("gave up after %s, want %s", took, odd)
		}
	})
}

func TestPatientConnPassesOtherErrorsOn(t *testing.T) {
	near, far := net.Pipe()
	far.Close()
	c := &StallTimeoutConn{Conn: near, Timeout: patience}
	if n, err := c.Write([]byte("x")); n != 0 || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %d, %v", n, err)
	}
	if c.NetConn() != near {
		t.Error("NetConn is not the connection beneath")
	}
}
