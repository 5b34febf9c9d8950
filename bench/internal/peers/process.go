package peers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"
)

// patience is how long a server may take to be ready, and to end.
const patience = 30 * time.Second

// process is a server that runs as a child. Static after construction, except
// for the state that exec.Cmd guards.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	// words is the match of ready, with its submatches.
	words []string
	// stdout is nil if ready was searched there: then it is read to its end.
	stdout io.Reader
	read   chan struct{} // closed when all its output was read
	ended  chan struct{} // closed when the process is gone, and all was read
}

// start runs a program and waits until a line of its standard error matches
// ready. Its standard input and output are pipes to the bench.
func start(ctx context.Context, o Options, ready *regexp.Regexp, name string, arguments ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, name, arguments...), read: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.SysProcAttr = dieWithParent()
	// A terminated server ends its workers, which a killed one cannot.
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 5 * time.Second
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// Separate pipes: those of exec.Cmd are closed by Wait, read or not.
	stdout, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stderr, theirsToo, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stdout, p.cmd.Stdout, p.cmd.Stderr = stdout, theirs, theirsToo
	err = p.cmd.Start()
	theirs.Close()
	theirsToo.Close()
	if err != nil {
		stdout.Close()
		stderr.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		p.cmd.Wait() // how it ended is in ProcessState
		stdout.Close()
		stderr.SetReadDeadline(time.Now().Add(time.Second)) // a child may hold it
		<-p.read
	}()
	return p, p.await(stderr, ready, o.Log)
}

// await returns once a line matches, and leaves a goroutine that reads the rest.
func (p *process) await(out io.ReadCloser, ready *regexp.Regexp, log io.Writer) error {
	if log == nil {
		log = io.Discard
	}
	found := make(chan []string, 1)
	go func() {
		defer close(p.read)
		defer out.Close()
		defer close(found)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for seen := false; lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			if words := ready.FindStringSubmatch(lines.Text()); words != nil && !seen {
				seen = true
				found <- words
			}
		}
	}()
	select {
	case words, ok := <-found:
		if !ok {
			return errors.Join(fmt.Errorf("%s ended before it was ready", p.cmd.Path), p.stop())
		}
		p.words = words
		return nil
	case <-time.After(patience):
		p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s is not ready after %v: want a line like %q", p.cmd.Path, patience, ready)
	}
}

// stop asks the process to end, and kills it if it does not.
func (p *process) stop() error {
	p.stdin.Close()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-time.After(patience):
		p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end within %v of SIGTERM", p.cmd.Path, patience)
	}
}
