package realserver

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"syscall"
	"time"
)

// process is one run of a server. Static after construction, except for what its
// parts guard themselves.
type process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	output  *output
	ended   chan struct{} // closed when it is gone
	address string
	fields  []string
}

// run starts a process and waits until it is ready.
func (c Command) run() (*process, error) {
	p := &process{cmd: exec.Command(c.Path, c.Args...), output: newOutput(), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = c.Dir, c.environment()
	p.cmd.Stdout, p.cmd.Stderr = stdout{p.output}, p.output
	as, err := attributes(c.User)
	if err != nil {
		return nil, err
	}
	p.cmd.SysProcAttr = as
	p.cmd.WaitDelay = time.Second // for what it may have started itself
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %v: %w", c, err)
	}
	go func() {
		defer close(p.ended)
		p.cmd.Wait() // how it ended is in ProcessState
	}()
	if err := p.becomeReady(c); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

func (p *process) becomeReady(c Command) error {
	tooLate := time.NewTimer(Patience)
	defer tooLate.Stop()
	var look <-chan time.Time
	if c.Address != "" {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case words := <-p.output.ready:
			p.address, p.fields = words[0], words[1:]
			return nil
		case <-look:
			if reachable(c.Address) {
				p.address = c.Address
				return nil
			}
		case <-p.ended:
			return fmt.Errorf("%v ended (%v) before it was ready; it printed:\n%s", c, p.cmd.ProcessState, p.output)
		case <-tooLate.C:
			return fmt.Errorf("%v is not ready after %v: want a line \"ready <address>\" on stdout, or a Command with an Address; it printed:\n%s", c, Patience, p.output)
		}
	}
}

func reachable(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
	p.stdin.Close()
}

// stop reports whether the process ended by itself.
func (p *process) stop(patience time.Duration) bool {
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT) // one that is paused takes no signal
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.ended:
		p.stdin.Close()
		return true
	case <-timer.C:
		p.kill()
		return false
	}
}
