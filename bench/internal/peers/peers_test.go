//go:build peers

package peers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testOptions specify a small server.
func testOptions(t *testing.T) Options {
	return Options{Subscribers: 100, EventBytes: 200, Resources: 100, ResourceBytes: 300, WorkDir: t.TempDir(), Log: t.Output()}
}

func startPeer(t *testing.T, p Peer) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // it may have to compile
	t.Cleanup(cancel)
	s, err := p.Start(ctx, testOptions(t))
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEveryPeerDelivers: each of three subscribers gets each of ten events, and
// no process is left.
func TestEveryPeerDelivers(t *testing.T) {
	for _, p := range All() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			s := startPeer(t, p)
			if s.Publish != nil {
				deliver(t, s)
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			for _, pid := range s.PIDs {
				if syscall.Kill(pid, 0) == nil {
					t.Errorf("process %d of %v is still there", pid, s.PIDs)
				}
			}
		})
	}
}

func deliver(t *testing.T, s *Server) {
	t.Helper()
	var subscribers []*bufio.Reader
	for range 3 {
		subscribers = append(subscribers, dial(t, s, s.Request))
	}
	warmUp(t, s, subscribers)
	events := make([][]byte, 10)
	now := time.Now().UnixNano()
	for i := range events {
		events[i] = testEvent(now + int64(i))
	}
	if err := errors.Join(s.Publish(events[:1]), s.Publish(events[1:4]), s.Publish(events[4:])); err != nil {
		t.Fatal(err)
	}
	for i, r := range subscribers {
		for at := now; at < now+int64(len(events)); at++ {
			if got, err := readUntil(r, fmt.Sprint(at)); err != nil || bytes.Count(got, s.Marker) != 1 {
				t.Fatalf("subscriber %d: %q, %v: want event %d with one %q", i, got, err, at-now, s.Marker)
			}
		}
	}
}

// warmUp publishes until every subscriber gets events: with some servers, a head
// means that a request was read, but not yet that the next event will arrive.
func warmUp(t *testing.T, s *Server, subscribers []*bufio.Reader) {
	t.Helper()
	const last = "1000000000000000001"
	ready := make(chan error, len(subscribers))
	for _, r := range subscribers {
		go func() {
			_, err := readUntil(r, "1000000000000000000")
			ready <- err
		}()
	}
	for n := 0; n < len(subscribers); {
		if err := s.Publish([][]byte{testEvent(1e18)}); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ready:
			if n++; err != nil {
				t.Fatal(err)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := s.Publish([][]byte{testEvent(1e18 + 1)}); err != nil {
		t.Fatal(err)
	}
	for i, r := range subscribers {
		if got, err := readUntil(r, last); err != nil {
			t.Fatalf("subscriber %d: %v after %q", i, err, got)
		}
	}
}

func testEvent(at int64) []byte {
	return fmt.Appendf(nil, `{"at":%d,"pad":%q}`, at, strings.Repeat("x", 150))
}

// dial sends a request and reads the head of the answer.
func dial(t *testing.T, s *Server, request []byte) *bufio.Reader {
	t.Helper()
	c, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write(request); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	if got, err := readUntil(r, "\r\n\r\n"); err != nil || !bytes.HasPrefix(got, []byte("HTTP/1.1 200")) {
		t.Fatalf("%q, %v: want 200", got, err)
	}
	return r
}

// readUntil reads until the input contains a word.
func readUntil(r *bufio.Reader, word string) (got []byte, err error) {
	for !bytes.Contains(got, []byte(word)) {
		b, err := r.ReadByte()
		if err != nil {
			return got, err
		}
		got = append(got, b)
	}
	return got, nil
}
