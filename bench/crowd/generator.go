package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/rpc"
	"slices"
	"strconv"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
)

// Start is how a generator begins.
type Start struct {
	Address string
	// Earlier is how many subscribers other generators have at the same leaf.
	Earlier int
}

// Report is the state of a generator, and what it has counted so far.
type Report struct {
	load.Stats
	Open, Away int
	// Resets are events of this name, Goodbyes likewise. Returns are the connections that
	// took the place of another one and are in sync.
	Resets, Goodbyes, Returns uint64
	// Resent has the bytes that these received until they were in sync.
	Resent uint64
	// Gaps are the times from the end of a connection until the next one was in sync.
	Gaps load.Histogram
	// Latency is the age of changes when they were read, since the last Report that cleared
	// it.
	Latency load.Histogram
}

// Wrong describes the subscribers that have not received exactly what they should have.
type Wrong struct {
	N       int
	Example string
}

// Generator holds subscribers that reconnect as docs/protocol.md demands of a client. Its
// exported methods are called by net/rpc, and executed in the loop of run.
type Generator struct {
	orders chan func()
	ended  chan struct{} // closed when no more orders can arrive

	// Owned by run.
	client  *load.Client
	request []byte
	away    []absent
	members []member
	report  Report
}

// member is a subscriber beside what the client knows of it.
type member struct {
	left  int64  // when its last connection ended, in nanoseconds; 0: it is in sync, or has never been connected
	bytes uint64 // that it had received then
	retry int64  // of its goodbye, in nanoseconds
}

// absent is a subscriber that waits before it reconnects.
type absent struct {
	until  int64
	member int
}

// generate executes orders until in ends.
func generate(in io.ReadCloser, out io.WriteCloser) error {
	g := &Generator{orders: make(chan func()), ended: make(chan struct{})}
	server := rpc.NewServer()
	if err := server.Register(g); err != nil {
		return err
	}
	go func() {
		server.ServeConn(pipes{in, out})
		close(g.ended)
	}()
	return g.run()
}

// pipes are the standard input and output of a process as one connection.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error { return errors.Join(p.WriteCloser.Close(), p.ReadCloser.Close()) }

func (g *Generator) run() error {
	for {
		if g.client == nil {
			select {
			case do := <-g.orders:
				do()
			case <-g.ended:
				return nil
			}
			continue
		}
		if _, err := g.client.Poll(5 * time.Millisecond); err != nil {
			return err
		}
		if err := g.comeBack(); err != nil {
			return err
		}
		select {
		case do := <-g.orders:
			do()
		case <-g.ended:
			return g.client.Close()
		default:
		}
	}
}

// do has the loop call f.
func (g *Generator) do(f func() error) error {
	done := make(chan error, 1)
	select {
	case g.orders <- func() { done <- f() }:
		return <-done
	case <-g.ended:
		return errors.New("ended")
	}
}

// Start makes the client.
func (g *Generator) Start(s Start, _ *bool) error {
	return g.do(func() (err error) {
		g.request = []byte("GET /v1/events?watch=" + watchName + " HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
		g.client, err = load.New(load.Options{
			Address: s.Address, Earlier: s.Earlier, IDs: true, Sample: 10,
			Marker: []byte("\nevent: upsert\n"), Done: []byte(`"type":"end_of_snapshot"`),
			OnBytes: g.scan, OnDone: g.inSync, OnEnd: g.left,
		})
		return err
	})
}

// Open connects subscribers.
func (g *Generator) Open(n int, _ *bool) error {
	return g.do(func() error {
		g.members = append(g.members, make([]member, n)...)
		return g.client.Open(n, load.Request{Bytes: g.request})
	})
}

// Move changes the address to which subscribers reconnect.
func (g *Generator) Move(address string, _ *bool) error {
	return g.do(func() error { return g.client.SetAddress(address) })
}

// Report reports. If clear is set, it forgets the latencies.
func (g *Generator) Report(clear bool, out *Report) error {
	return g.do(func() error {
		*out = g.report
		out.Stats, out.Latency, out.Away = g.client.Stats(), *g.client.Latency(), len(g.away)
		for n := range g.client.Len() {
			if g.client.Alive(n) {
				out.Open++
			}
		}
		if clear {
			*g.client.Latency() = load.Histogram{}
		}
		return nil
	})
}

// Expected is what each subscriber must have received: so many events, and the position of
// the newest revision.
type Expected struct {
	Events   uint64
	Revision uint64
}

// Check counts the subscribers to which this does not apply.
func (g *Generator) Check(want Expected, out *Wrong) error {
	return g.do(func() error {
		suffix := "-" + strconv.FormatUint(want.Revision, 10)
		for n := range g.client.Len() {
			id, events := g.client.LastID(n), g.client.Events(n)
			if events == want.Events && len(id) > len(suffix) && id[len(id)-len(suffix):] == suffix && g.client.Alive(n) {
				continue
			}
			if out.N++; out.N == 1 {
				out.Example = fmt.Sprintf("subscriber %d: %d events, last position %q, connected: %v", n, events, id, g.client.Alive(n))
			}
		}
		return nil
	})
}

var (
	reset   = []byte("event: reset")
	goodbye = []byte("event: goodbye")
	retryIn = []byte(`"retry_ms":`)
)

// scan looks for rare events. Each is sent at once, so that a read has it whole.
func (g *Generator) scan(n int, b []byte) {
	if bytes.Contains(b, reset) {
		g.report.Resets++
	}
	if !bytes.Contains(b, goodbye) {
		return
	}
	g.report.Goodbyes++
	_, rest, _ := bytes.Cut(b, retryIn)
	ms := 0
	for _, c := range rest {
		if c < '0' || c > '9' {
			break
		}
		ms = ms*10 + int(c-'0')
	}
	g.members[n].retry = int64(ms) * int64(time.Millisecond)
}

// left plans when a subscriber comes back, whose connection has ended.
func (g *Generator) left(n int, _ error) {
	m, now := &g.members[n], time.Now().UnixNano()
	if m.left == 0 {
		m.left, m.bytes = now, g.client.Bytes(n)
	}
	wait := m.retry
	if m.retry = 0; wait == 0 { // as docs/protocol.md has it for a connection that failed
		wait = int64(time.Second) + rand.Int64N(int64(2*time.Second))
	}
	g.away = append(g.away, absent{now + wait, n})
}

// inSync records that a subscriber has everything up to now.
func (g *Generator) inSync(n int) {
	m := &g.members[n]
	if m.left == 0 {
		return
	}
	g.report.Returns++
	g.report.Resent += g.client.Bytes(n) - m.bytes
	g.report.Gaps.Record(time.Duration(time.Now().UnixNano() - m.left))
	m.left = 0
}

// comeBack reconnects the subscribers that have waited long enough.
func (g *Generator) comeBack() error {
	now := time.Now().UnixNano()
	var due []int
	g.away = slices.DeleteFunc(g.away, func(a absent) bool {
		if a.until > now {
			return false
		}
		due = append(due, a.member)
		return true
	})
	for _, n := range due {
		r := g.request
		if id := g.client.LastID(n); id != "" {
			r = load.With(r, "Last-Event-ID", id)
		}
		if err := g.client.Reconnect(n, load.Request{Bytes: r}); err != nil {
			return err
		}
	}
	return nil
}
