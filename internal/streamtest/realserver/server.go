package realserver

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
)

// stopPatience is how long a server may take to end at SIGTERM.
const stopPatience = 20 * time.Second

// errNotRunning is the error of a server that was never started.
var errNotRunning = errors.New("it is not running")

// Server is a server that runs, or ran. Methods that act on it are called by one
// goroutine at a time; those that query it, by any.
type Server struct {
	// Static after construction.
	command Command

	// Atomic: the newest run.
	process atomic.Pointer[process]
}

// Addr returns the address of the line "ready", or of the command.
func (s *Server) Addr() string { return s.process.Load().address }

// Fields returns the rest of the line "ready".
func (s *Server) Fields() []string { return s.process.Load().fields }

// Output returns the last output of the newest run.
func (s *Server) Output() string { return s.process.Load().output.String() }

// Pid returns the id of the newest run's process.
func (s *Server) Pid() int { return s.process.Load().cmd.Process.Pid }

// Alive reports whether the process exists, paused or not.
func (s *Server) Alive() bool {
	p := s.process.Load()
	return p != nil && p.alive()
}

// Kill ends the process as a power cut would (SIGKILL), and returns when it is
// gone. It may be gone already.
func (s *Server) Kill() {
	if p := s.process.Load(); p != nil {
		p.kill()
	}
}

// Stop asks the process to end (SIGTERM) and returns when it has. One that does
// not within 20 s is killed, which is an error.
func (s *Server) Stop() error {
	p := s.process.Load()
	if p == nil {
		return errNotRunning
	}
	if !p.stop(stopPatience) {
		return fmt.Errorf("%v did not end at SIGTERM within %v and was killed; it printed:\n%s", s.command, stopPatience, p.output)
	}
	return nil
}

// Restart starts the program again with the same arguments and returns when it is
// ready. It is killed first if it still runs.
func (s *Server) Restart() error {
	s.Kill()
	p, err := s.command.run()
	if err != nil {
		return err
	}
	s.process.Store(p)
	return nil
}

// Pause stops the process where it is (SIGSTOP): its connections stay open, new
// ones are accepted by the system, and nothing is answered. On Linux it returns
// once the process has stopped.
func (s *Server) Pause() {
	p := s.process.Load()
	p.signal(syscall.SIGSTOP)
	awaitStopped(p.cmd.Process.Pid)
}

// Resume continues the process (SIGCONT).
func (s *Server) Resume() { s.process.Load().signal(syscall.SIGCONT) }
