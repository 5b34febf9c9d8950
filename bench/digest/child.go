package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
)

// child is a process that is measured. Owned by the goroutine that has started it.
type child struct {
	address string // of the gateway; "": there is none
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   *bufio.Scanner
}

// start starts a program with a state of so many bytes a value. Stop it.
func start(ctx context.Context, program, what string, p plan, size int, digests bool) (*child, error) {
	c := &child{cmd: exec.CommandContext(
		ctx, program, "-serve", what, "-keys", strconv.Itoa(p.keys), "-value", strconv.Itoa(size), "-digests="+strconv.FormatBool(digests),
	)}
	c.cmd.Stderr = &passed{}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.lines = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	ready, err := c.line()
	if err != nil {
		c.stop()
		return nil, err
	}
	var computed bool
	if _, err = fmt.Sscan(ready, &computed, &c.address); c.address == noAddress {
		c.address = ""
	}
	if err == nil && computed != digests {
		err = fmt.Errorf("%s computes digests: %t, want %t", program, computed, digests)
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *child) line() (string, error) {
	if c.lines.Scan() {
		return c.lines.Text(), nil
	}
	return "", fmt.Errorf("the measured process has ended: %v, %s", c.lines.Err(), c.cmd.Stderr)
}

// ask has the child do something n times, and returns the figure that it answers with.
func (c *child) ask(what string, n int) (figure float64, err error) {
	if _, err := fmt.Fprintln(c.in, what, n); err != nil {
		return 0, err
	}
	line, err := c.line()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(line, 64)
}

// stop ends the child.
func (c *child) stop() {
	_ = c.in.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // it was killed
}

// passed keeps the end of what a process says.
type passed struct{ last []byte }

func (p *passed) Write(b []byte) (int, error) {
	p.last = append(p.last, b...)
	p.last = p.last[max(0, len(p.last)-2000):]
	return len(b), nil
}

func (p *passed) String() string { return string(p.last) }
