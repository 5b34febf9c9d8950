package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// gatewayProcess is the gateway that is measured.
type gatewayProcess struct {
	address string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

func startGateway(p plan, profile string) (*gatewayProcess, error) {
	cmd := exec.Command(os.Args[0], "-serve", "-pump="+p.pump, "-cpuprofile="+profile,
		fmt.Sprint("-resources=", p.resources), fmt.Sprint("-bytes=", p.bytes), fmt.Sprint("-budget=", p.budget))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &gatewayProcess{cmd: cmd, in: in, out: bufio.NewScanner(out)}
	if g.address, err = g.line(); err != nil {
		g.stop()
	}
	return g, err
}

func (g *gatewayProcess) line() (string, error) {
	if !g.out.Scan() {
		return "", errors.Join(g.out.Err(), errors.New("the gateway has ended"))
	}
	return g.out.Text(), nil
}

// order sends the gateway a command, waits until it is executed, and returns
// the position from before.
func (g *gatewayProcess) order(order string, n int) (string, error) {
	if _, err := fmt.Fprintln(g.in, order, n); err != nil {
		return "", err
	}
	return g.line()
}

// stop ends the gateway, by the end of its commands.
func (g *gatewayProcess) stop() {
	g.in.Close()
	_ = g.cmd.Wait() // its messages are in its log
}

// storm is the watch, and the source of it.
type storm struct {
	plan
	orders   chan func(stream.Sink) error
	epoch    int
	revision uint64
}

// serve is the gateway: it executes the commands that it reads until there are no
// more.
func serve(p plan, profile string) error {
	s := &storm{plan: p, orders: make(chan func(stream.Sink) error)}
	registry := watch.NewRegistry()
	defer registry.Close()
	w, err := registry.Add(watch.Config{Name: "storm", SourceName: "storm", Source: stream.SourceFunc(s.watch)})
	if err != nil {
		return err
	}
	g, err := gateway.New(gateway.Config{
		Registry: registry, StreamSettings: gateway.StreamSettings{Pump: gateway.Pump(p.pump), SnapshotBudget: p.budget, DrainDelay: -1, Drain: -1, MaxAge: -1}, Logger: slog.New(slog.DiscardHandler),
		AfterRush: func() { runtime.GC(); debug.FreeOSMemory() }, // as the command does
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, gateway.Listeners{HTTP: l}) }()
	s.orders <- s.replace
	for changed := w.Changed(); w.Status().State != stream.InSync; changed = w.Changed() {
		<-changed
	}
	debug.FreeOSMemory() // memory used by loading
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	fmt.Println(l.Addr())
	err = s.execute(os.Stdin)
	cancel()
	return errors.Join(err, <-ended)
}

// watch implements stream.Source.
func (s *storm) watch(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	for {
		select {
		case order := <-s.orders:
			if err := order(sink); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// replace gives the watch a snapshot, in a revision order of its own.
func (s *storm) replace(sink stream.Sink) error {
	s.epoch++
	s.revision = 0
	if err := sink.Reset(fmt.Sprint("e", s.epoch)); err != nil {
		return err
	}
	for i := range s.resources {
		if err := s.upsert(sink, i); err != nil {
			return err
		}
	}
	return sink.Commit(s.revision)
}

func (s *storm) upsert(sink stream.Sink, i int) error {
	s.revision++
	value := `"` + strings.Repeat("x", max(s.bytes-2, 0)) + `"`
	return sink.Upsert(stream.Resource{Key: "key-" + strconv.Itoa(i), Revision: s.revision, Value: []byte(value)})
}

// execute reads commands, each a word and a number.
func (s *storm) execute(r io.Reader) error {
	for in := bufio.NewScanner(r); in.Scan(); {
		var order string
		var n int
		if _, err := fmt.Sscan(in.Text(), &order, &n); err != nil {
			return fmt.Errorf("command %q: %w", in.Text(), err)
		}
		position := fmt.Sprintf("storm@e%d-%d", s.epoch, s.revision)
		done := make(chan struct{})
		s.orders <- func(sink stream.Sink) error {
			defer close(done)
			if order == "epoch" {
				return s.replace(sink)
			}
			return s.change(sink, n)
		}
		<-done
		fmt.Println(position)
	}
	return nil
}

// change makes n changes, spread over all resources.
func (s *storm) change(sink stream.Sink, n int) error {
	for i := range n {
		if err := s.upsert(sink, i*(s.resources/n)); err != nil {
			return err
		}
		if err := sink.Commit(s.revision); err != nil {
			return err
		}
	}
	return nil
}
