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
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/process"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
)

const (
	watch     = "services" // the only one
	epoch     = "digest"
	noAddress = "none" // of a log without a gateway
)

// served is the main function of the processes that are measured: it says whether it computes digests and
// where its gateway listens, and then answers each line of its input with a figure.
type served struct {
	state
	digests bool
	used    time.Duration  // of processor time by the last commits
	gateway *gatewayServer // nil: the log alone
	log     *log.Writer    // nil: the watch of the gateway
}

// state is what there is to be changed.
type state struct {
	names    []string
	value    []byte
	revision uint64
	random   uint64
}

func serve(ctx context.Context, what string, keys, size int, digests bool) error {
	s := &served{digests: digests, state: state{value: []byte(`"` + strings.Repeat("x", size-2) + `"`)}}
	for i := range keys {
		s.names = append(s.names, fmt.Sprintf("namespace-%02d/resource-%07d", i%100, i))
	}
	address := noAddress
	var of log.Snapshot
	switch what {
	case "log":
		s.log = log.NewWriter(log.Config{Watch: watch})
		if _, err := s.log.Replace(epoch, s.all(), s.revision); err != nil {
			return err
		}
		of = s.log.Snapshot()
	case "gateway":
		w, err := s.listen(ctx)
		if err != nil {
			return err
		}
		defer s.gateway.close()
		address, of = s.gateway.address, w.Snapshot()
	default:
		return fmt.Errorf("-serve is %q: want log or gateway", what)
	}
	fmt.Println(!strings.HasSuffix(of.Digest().String(), strings.Repeat("0", 32)), address)
	return s.answer(os.Stdin)
}

// answer answers each line.
func (s *served) answer(in io.Reader) error {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var what string
		var n int
		if _, err := fmt.Sscan(lines.Text(), &what, &n); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		figure, err := s.do(what, n)
		if err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		fmt.Println(figure)
	}
	return nil
}

func (s *served) do(what string, n int) (float64, error) {
	switch what {
	case "cpu":
		used, err := process.CPU()
		return used.Seconds(), err
	case "commits": // as fast as they go: seconds
		return s.timed(s.changes(n))
	case "used": // of processor time by these
		return s.used.Seconds(), nil
	case "paced": // a hundred a second
		return 0, s.paced(n)
	case "first":
		return s.firstByte(n)
	}
	return 0, errors.New("want cpu, commits, used, paced or first")
}

// all returns the state.
func (s *state) all() []stream.Resource {
	all := make([]stream.Resource, len(s.names))
	for i, name := range s.names {
		s.revision++
		all[i] = stream.Resource{Key: name, Revision: s.revision, Value: s.value}
	}
	return all
}

// changes returns n changes of random keys, which are adjacent in memory, as if they had just been read
// from an upstream.
func (s *state) changes(n int) []log.Change {
	changes := make([]log.Change, n)
	for i := range changes {
		s.random = s.random*6364136223846793005 + 1442695040888963407
		s.revision++
		key := strings.Clone(s.names[(s.random>>33)%uint64(len(s.names))])
		changes[i].Resource = stream.Resource{Key: key, Revision: s.revision, Value: s.value}
	}
	return changes
}

// commit commits each change.
func (s *served) commit(changes []log.Change) error {
	if s.gateway != nil {
		return s.gateway.commit(changes)
	}
	for i := range changes {
		if _, err := s.log.Commit(changes[i:i+1], changes[i].Revision); err != nil {
			return err
		}
	}
	return nil
}

// timed commits each change, and returns how many seconds that took.
func (s *served) timed(changes []log.Change) (float64, error) {
	before, err := process.CPU()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := s.commit(changes); err != nil {
		return 0, err
	}
	took := time.Since(start)
	after, err := process.CPU()
	s.used = after - before
	return took.Seconds(), err
}

func (s *served) paced(n int) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range n {
		<-tick.C
		if err := s.commit(s.changes(1)); err != nil {
			return err
		}
	}
	return nil
}

// firstByte makes n commits a millisecond apart, and returns the median of the microseconds until the only
// subscriber has read the first byte of each.
func (s *served) firstByte(n int) (float64, error) {
	f, err := load.Follow(s.gateway.address, request(s.digests))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	took, err := load.FirstBytes(f, n, func() (time.Time, error) {
		err := s.commit(s.changes(1))
		return s.gateway.committed, err
	})
	if err != nil {
		return 0, err
	}
	return took[n/2], nil
}

// request asks for the watch, and for digests.
func request(digests bool) []byte {
	query := "?watch=" + watch
	if digests {
		query += "&digest=1"
	}
	return []byte("GET /v1/events" + query + " HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
}

// gatewayServer is a gateway on loopback whose watch is fed by this process.
type gatewayServer struct {
	// Static after construction.
	address string
	changes chan []log.Change
	done    chan error
	stop    context.CancelFunc
	ended   chan error
	watches *streamwatch.Registry

	// committed is when the last change was handed to the watch; valid after commit.
	committed time.Time
}

// listen starts the gateway.
func (s *served) listen(ctx context.Context) (*streamwatch.Watch, error) {
	g := &gatewayServer{changes: make(chan []log.Change), done: make(chan error), ended: make(chan error, 1), watches: streamwatch.NewRegistry()}
	source := stream.SourceFunc(func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		return g.source(ctx, &s.state, sink)
	})
	w, err := g.watches.Add(streamwatch.Config{Name: watch, SourceName: "digest", Source: source})
	if err != nil {
		return nil, err
	}
	at, err := gateway.New(gateway.Config{Registry: g.watches, StreamSettings: gateway.StreamSettings{DrainDelay: -1, Drain: -1}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g.address = listener.Addr().String()
	ctx, g.stop = context.WithCancel(ctx)
	go func() { g.ended <- at.Serve(ctx, gateway.Listeners{HTTP: listener}) }()
	s.gateway = g
	return w, w.Prime(ctx)
}

// source implements stream.Source: a snapshot, then the changes of commit.
func (g *gatewayServer) source(ctx context.Context, s *state, sink stream.Sink) error {
	if err := sink.Reset(epoch); err != nil {
		return err
	}
	for _, r := range s.all() {
		if err := sink.Upsert(r); err != nil {
			return err
		}
	}
	if err := sink.Commit(s.revision); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case changes := <-g.changes:
			g.done <- g.each(changes, sink)
		}
	}
}

func (g *gatewayServer) each(changes []log.Change, sink stream.Sink) error {
	for i := range changes {
		r := changes[i].Resource
		if err := sink.Upsert(r); err != nil {
			return err
		}
		g.committed = time.Now()
		if err := sink.Commit(r.Revision); err != nil {
			return err
		}
	}
	return nil
}

func (g *gatewayServer) commit(changes []log.Change) error {
	select {
	case g.changes <- changes:
		return <-g.done
	case err := <-g.ended:
		return fmt.Errorf("the gateway has ended: %w", err)
	}
}

func (g *gatewayServer) close() {
	g.stop()
	<-g.ended
	g.watches.Close()
}
