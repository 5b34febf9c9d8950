package realserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is the time limit of expected events, and quiet the wait for
// unexpected ones.
const (
	patience = 20 * time.Second
	quiet    = 50 * time.Millisecond
)

// command is this test binary as a server.
func command(t *testing.T, mode, address string) Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Command{Path: self, Args: []string{address}, Env: []string{asServer + "=" + mode}}
}

// ask returns the process id that a server answers with.
func ask(address string, wait time.Duration) (string, error) {
	c, err := net.DialTimeout("tcp", address, wait)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(wait))
	b, err := io.ReadAll(c)
	return strings.TrimSpace(string(b)), err
}

func expectAnswer(t *testing.T, s *Server) {
	t.Helper()
	if got, err := ask(s.Addr(), patience); err != nil || got != fmt.Sprint(s.Pid()) {
		t.Fatalf("it answers %q (%v): want its process id %d", got, err, s.Pid())
	}
}

func TestStartReturnsTheAddress(t *testing.T) {
	s := command(t, "well", "127.0.0.1:0").Start(t)
	if want := []string{"data=127.0.0.1:0", "more"}; !slices.Equal(s.Fields(), want) {
		t.Errorf("fields %q: want %q", s.Fields(), want)
	}
	expectAnswer(t, s)
}

func TestKillAndRestart(t *testing.T) {
	address := FreeAddress(t)
	s := command(t, "well", address).Start(t)
	first := s.Pid()
	s.Kill()
	s.Kill() // any number of times
	if _, err := ask(address, patience); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("killed, it answers %v: want it to be gone", err)
	}
	if s.Alive() {
		t.Error("it is alive after it was killed")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if s.Addr() != address || s.Pid() == first {
		t.Errorf("restarted at %s with id %d: want %s and another id", s.Addr(), s.Pid(), address)
	}
	expectAnswer(t, s)
}

func TestStop(t *testing.T) {
	s := command(t, "well", "127.0.0.1:0").Start(t)
	s.Pause()
	if err := s.Stop(); err != nil {
		t.Errorf("stop a paused server: %v", err)
	}
	if code := s.process.Load().cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ended with %d: want SIGTERM to be an orderly end", code)
	}
}

func TestPause(t *testing.T) {
	s := command(t, "well", "127.0.0.1:0").Start(t)
	s.Pause()
	if got, err := ask(s.Addr(), quiet); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("paused, it answers %q (%v): want a connection, and silence", got, err)
	}
	s.Resume()
	expectAnswer(t, s)
}

func TestEndsWithItsStdin(t *testing.T) {
	s := command(t, "well", "127.0.0.1:0").Start(t)
	p := s.process.Load()
	p.stdin.Close()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Error("it continues without the tests")
	}
}

// TestAddressWithoutReadyLine runs a server like a program that was not written for
// this.
func TestAddressWithoutReadyLine(t *testing.T) {
	c := command(t, "mute", FreeAddress(t))
	c.Address = c.Args[0]
	expectAnswer(t, c.Start(t))
}

func TestServerThatDoesNotStart(t *testing.T) {
	_, err := command(t, "broken", "127.0.0.1:0").start()
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "mode broken") {
		t.Errorf("got %v: want its exit status and its output", err)
	}
	_, err = Command{Path: "/nonexistent"}.start()
	if err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("got %v: want the path", err)
	}
	if err := new(Server).Stop(); err == nil {
		t.Error("a server that never ran was stopped")
	}
}

func TestShared(t *testing.T) {
	t.Setenv(asServer, "well")
	self, _ := os.Executable()
	a, b := Shared(t, self, "127.0.0.1:0"), Shared(t, self, "127.0.0.1:0")
	if a != b {
		t.Error("two servers for the same arguments")
	}
	a.Kill()
	c := Shared(t, self, "127.0.0.1:0")
	expectAnswer(t, c)
	stopShared()
	if c.Alive() {
		t.Error("a shared server outlives the tests")
	}
}
