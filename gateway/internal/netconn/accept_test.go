package netconn

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
)

// failing is a listener whose Accept fails.
type failing struct {
	net.Listener
	err error
}

func (f failing) Accept() (net.Conn, error) { return nil, f.err }

// Errors of a listener are logged, a limited number of times, and its end is not one.
func TestAcceptErrorsAreLogged(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"an error":            {errors.New("network stack is on fire"), 10},
		"a missing resource":  {syscall.ENOBUFS, 10},
		"too few descriptors": {syscall.EMFILE, 10},
		"the end":             {&net.OpError{Op: "accept", Err: net.ErrClosed}, 0},
	} {
		var out bytes.Buffer
		l := Listen(failing{err: c.err}, 0, slog.New(slog.NewTextHandler(&out, nil)).With("listener", "http"))
		for range 50 {
			if _, err := l.Accept(); !errors.Is(err, c.err) {
				t.Fatalf("%s: error %v", name, err)
			}
		}
		if n := strings.Count(out.String(), "a connection cannot be accepted"); n != c.want || n > 0 && !strings.Contains(out.String(), "listener=http") {
			t.Errorf("%s: %d lines, want %d:\n%s", name, n, c.want, &out)
		}
	}
}

// A lack of descriptors has a warning of its own where connections are counted.
func TestLackOfDescriptorsIsLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	l := Listen(failing{err: syscall.EMFILE}, 0, log).Counted(NewConnections(10, log), true)
	for range 50 {
		_, _ = l.Accept()
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "there are no descriptors") {
		t.Errorf("got %s", got)
	}
}
