package grpc

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Time is virtual in these tests: real gRPC over a network in memory, in a bubble.

// watch runs a source until Watch returns, and returns how long it took.
func watch(t *testing.T, s *Source, sink stream.Sink) (took time.Duration, err error) {
	t.Helper()
	began := time.Now()
	err = s.Watch(t.Context(), stream.Resume{}, sink)
	return time.Since(began), err
}

// inMemory returns a source of a server in memory; end stops the server.
func inMemory(t *testing.T, c Config, scripts ...script) (s *Source, end func()) {
	t.Helper()
	return inMemoryThrough(t, func(c net.Conn) net.Conn { return c }, c, scripts...)
}

// inMemoryThrough is inMemory with something between source and server.
func inMemoryThrough(t *testing.T, wrap func(net.Conn) net.Conn, c Config, scripts ...script) (s *Source, end func()) {
	t.Helper()
	network := make(memory)
	u, end := network.serve(scripts...)
	c.Address, c.Watch = u.address, "services"
	c.network = func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := network.dial(ctx, address)
		if err != nil {
			return nil, err
		}
		return wrap(conn), nil
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s, end
}

// after waits.
func after(d time.Duration) { <-time.After(d) }

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := inMemory(t, Config{StallAfter: time.Minute}, func(c *call) error {
			c.send(reset(), endOfSnapshot(1, 0))
			after(50 * time.Second)
			c.send(bookmark(2))
			return c.hold()
		})
		defer end()
		sink := &calls{}
		took, err := watch(t, s, sink)
		if !errors.Is(err, stream.ErrStalled) || !strings.HasSuffix(err.Error(), "nothing received for 1m0s") {
			t.Errorf("error %v", err)
		}
		if took != 110*time.Second {
			t.Errorf("gave up after %v, want a minute after the last event, which came after 50 s", took)
		}
		if got := sink.lines[len(sink.lines)-1]; got != "commit 2" {
			t.Errorf("the last call was %s", got)
		}
	})
}

// An upstream that accepts a call and sends nothing at all is stalled too.
func TestStallFromTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := inMemory(t, Config{StallAfter: time.Minute}, say())
		defer end()
		if took, err := watch(t, s, &calls{}); !errors.Is(err, stream.ErrStalled) || took != time.Minute {
			t.Errorf("error %v after %v", err, took)
		}
	})
}

// slowSink is slow in each Commit.
type slowSink struct {
	calls
	pause time.Duration
}

func (s *slowSink) Commit(revision uint64) error {
	after(s.pause)
	return s.calls.Commit(revision)
}

// The time that the sink takes does not count as the upstream's silence.
func TestStallDoesNotCountOurOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := inMemory(t, Config{StallAfter: time.Minute}, sayAndEnd(nil, reset(), endOfSnapshot(1, 0)))
		defer end()
		if took, err := watch(t, s, &slowSink{pause: time.Hour}); err != nil || took != time.Hour {
			t.Errorf("error %v after %v", err, took)
		}
	})
}

// Silence is a stall only if that is configured.
func TestQuietUpstreamIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := inMemory(t, Config{}, func(c *call) error {
			c.send(reset(), endOfSnapshot(1, 0))
			after(24 * time.Hour)
			return nil
		})
		defer end()
		if took, err := watch(t, s, &calls{}); err != nil || took != 24*time.Hour {
			t.Errorf("error %v after %v", err, took)
		}
	})
}

// blackhole is a connection that, once open, drops everything.
type blackhole struct {
	net.Conn
	open *atomic.Bool
}

func (h blackhole) Write(b []byte) (int, error) {
	if h.open.Load() {
		return len(b), nil
	}
	return h.Conn.Write(b)
}

// intoHole returns a source whose link silently dies after a second.
func intoHole(t *testing.T, c Config) (s *Source, end func()) {
	t.Helper()
	var dead atomic.Bool
	return inMemoryThrough(t, func(c net.Conn) net.Conn { return blackhole{c, &dead} }, c, func(c *call) error {
		c.send(reset(), endOfSnapshot(1, 0))
		after(time.Second)
		dead.Store(true)
		return c.hold()
	})
}

func TestKeepaliveFindsDeadLink(t *testing.T) {
	for configured, expected := range map[time.Duration]time.Duration{0: DefaultKeepalive, time.Minute: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s, end := intoHole(t, Config{Keepalive: configured})
			defer end()
			took, err := watch(t, s, &calls{})
			if status.Code(err) != codes.Unavailable {
				t.Errorf("error %v", err)
			}
			if took < expected || took > 2*expected+pingTimeout {
				t.Errorf("keepalive %v: the link was dead after a second, and found dead after %v", configured, took)
			}
		})
	}
}

// Pings can be switched off: then the dead link goes unnoticed.
func TestNoKeepalive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := intoHole(t, Config{Keepalive: -1})
		defer end()
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(time.Hour, cancel).Stop() // no deadline, which the server would observe as well
		if err := s.Watch(ctx, stream.Resume{}, &calls{}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

func TestGoodbyeSetsTheNextAttempt(t *testing.T) {
	tests := []struct {
		reason string
		retry  uint32
		wait   time.Duration
		fails  bool
	}{
		{"draining", 4210, 4210 * time.Millisecond, false},
		{"overloaded", 3_600_000, maxRetryWait, false},
		{"complete", 0, 0, false},
		{"max_age", 4210, 0, false},
		{"revoked", 7000, 7 * time.Second, true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, end := inMemory(t, Config{},
					func(c *call) error {
						c.send(reset(), endOfSnapshot(1, 0), goodbye(test.reason, test.retry))
						return c.hold() // it is the source that disconnects
					},
					sayAndEnd(nil))
				defer end()
				if took, err := watch(t, s, &calls{}); (err != nil) != test.fails || took != 0 {
					t.Errorf("error %v after %v", err, took)
				}
				if took, err := watch(t, s, &calls{}); err != nil || took != test.wait {
					t.Errorf("reconnected after %v, want %v (error %v)", took, test.wait, err)
				}
			})
		})
	}
}

// A source that waits to reconnect can be stopped.
func TestGoodbyeWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := inMemory(t, Config{}, sayAndEnd(nil, goodbye("draining", 20_000)))
		defer end()
		if _, err := watch(t, s, &calls{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := s.Watch(ctx, stream.Resume{}, &calls{})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("error %v after %v", err, took)
		}
	})
}

// Close ends a running or waiting call, and waits for its end.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := inMemory(t, Config{}, say(reset(), endOfSnapshot(1, 0)))
		defer end()
		ended := make(chan error, 1)
		go func() { ended <- s.Watch(context.Background(), stream.Resume{}, &calls{}) }()
		synctest.Wait()
		began := time.Now()
		s.Close()
		synctest.Wait() // package closing tests that Close waits for the end of Watch
		if len(ended) == 0 || !time.Now().Equal(began) {
			t.Fatal("Close has returned, and Watch has not")
		}
		if err := <-ended; !errors.Is(err, errClosed) {
			t.Errorf("error %v", err)
		}
		if _, err := watch(t, s, &calls{}); !errors.Is(err, errClosed) {
			t.Errorf("Watch after Close: error %v", err)
		}
		s.Close()
	})
}
