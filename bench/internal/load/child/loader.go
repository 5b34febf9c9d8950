package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
)

// Loader is a load generator in another process.
type Loader struct {
	cmd   *exec.Cmd
	calls *rpc.Client
}

// Options are those of load.Options that can be sent through a pipe.
type Options struct {
	Address             string
	Marker, Done, Stamp []byte
	EndIsDone, IDs      bool
	Sample, InFlight    int
	// Keep is how many bytes of connection 0 are kept for Kept, at most.
	Keep int
}

// Latency has the measurements of the sampled connections.
type Latency struct {
	Count         uint64
	P50, P99, Max time.Duration
}

// Times are how long after their requests connections were done.
type Times struct {
	Count       int
	Median, Max time.Duration
}

// Start starts the program, which calls Serve, and makes its Client.
func Start(ctx context.Context, program string, o Options) (*Loader, error) {
	l := &Loader{cmd: exec.CommandContext(ctx, program)}
	l.cmd.Stderr = os.Stderr
	in, err := l.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the load generator: %w", err)
	}
	l.calls = rpc.NewClient(pipes{out, in})
	if err := l.call("New", o, new(none)); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// pipes are the standard input and output of a process as one connection.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error { return errors.Join(p.WriteCloser.Close(), p.ReadCloser.Close()) }

// PID is the process.
func (l *Loader) PID() int { return l.cmd.Process.Pid }

// Open is Client.Open.
func (l *Loader) Open(n int, r load.Request) error {
	return l.call("Open", OpenOrder{N: n, Request: r}, new(none))
}

// OpenEach is Client.OpenEach.
func (l *Loader) OpenEach(requests []load.Request) error {
	return l.call("OpenEach", requests, new(none))
}

// Reopen is Client.Reopen.
func (l *Loader) Reopen(r load.Request) error { return l.call("Reopen", r, new(none)) }

// Release releases all connections that are Held, one after the other.
func (l *Loader) Release() error { return l.call("Release", false, new(none)) }

// HangupAll is Client.HangupAll.
func (l *Loader) HangupAll() error { return l.call("HangupAll", false, new(none)) }

// Stats is Client.Stats.
func (l *Loader) Stats() (s load.Stats, err error) {
	err = l.call("Stats", false, &s)
	return s, err
}

// Latency returns the measurements since the last call.
func (l *Loader) Latency() (out Latency, err error) {
	err = l.call("Latency", false, &out)
	return out, err
}

// Times returns when connections were done.
func (l *Loader) Times() (t Times, err error) {
	err = l.call("Times", false, &t)
	return t, err
}

// Kept returns the bytes that Options.Keep requested.
func (l *Loader) Kept() (b []byte, err error) {
	err = l.call("Kept", false, &b)
	return b, err
}

// LastID returns the last event ID of connection n.
func (l *Loader) LastID(n int) (id string, err error) {
	err = l.call("LastID", n, &id)
	return id, err
}

// Events returns the number of events of each connection.
func (l *Loader) Events() (counts []uint64, err error) {
	err = l.call("Events", false, &counts)
	return counts, err
}

// Stop ends the process, and with it all connections.
func (l *Loader) Stop() error {
	l.calls.Close()
	if err := l.cmd.Wait(); err != nil {
		return fmt.Errorf("the load generator: %w", err)
	}
	return nil
}

func (l *Loader) call(method string, arguments, reply any) error {
	if err := l.calls.Call("Orders."+method, arguments, reply); err != nil {
		return fmt.Errorf("load generator, %s: %w", method, err)
	}
	return nil
}
