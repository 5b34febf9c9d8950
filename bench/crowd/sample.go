package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
	"github.com/watchtide/watchtide/bench/internal/received"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// sampled is a subscriber whose events are all kept, to be checked. Owned by its goroutine
// until it has ended.
type sampled struct {
	name string
	leaf *leaf

	at          *streamtest.Mark // its last id
	state       streamtest.State // at any time
	pending     []stream.Event   // since the last id
	connection  *streamtest.Connection
	connections []*streamtest.Connection
	retry       time.Duration // of its goodbye
}

// sample is all of them.
type sample struct {
	stop    context.CancelFunc
	members sync.WaitGroup
	all     []*sampled
	broken  atomic.Pointer[error] // the first failure
}

// newSample starts n subscribers of the leaves, in turns.
func newSample(ctx context.Context, n int, leaves []*leaf) *sample {
	ctx, stop := context.WithCancel(ctx)
	s := &sample{stop: stop}
	for i := range n {
		m := &sampled{name: fmt.Sprint("subscriber ", i), leaf: leaves[i%len(leaves)], state: streamtest.State{}}
		s.all = append(s.all, m)
		s.members.Go(func() {
			if err := m.live(ctx); err != nil {
				err = fmt.Errorf("%s: %w", m.name, err)
				s.broken.CompareAndSwap(nil, &err)
			}
		})
	}
	return s
}

// check ends the subscribers, and runs all checkers on what they have received.
func (s *sample) check(truth *streamtest.Truth) (connections int, err error) {
	s.stop()
	s.members.Wait()
	if err := s.broken.Load(); err != nil {
		return 0, *err
	}
	h := &streamtest.History{Truth: truth, Settled: true}
	for _, m := range s.all {
		for _, c := range m.connections {
			h.Add(c)
			connections++
		}
	}
	return connections, streamtest.CheckAll(h)
}

// live connects, and comes back, until ctx ends.
func (m *sampled) live(ctx context.Context) error {
	for {
		address, replica := m.leaf.at()
		m.connection = &streamtest.Connection{Client: m.name, Replica: replica, Opened: time.Now(), From: m.at}
		if m.at != nil {
			m.connection.Begin = m.state.Clone()
		}
		m.retry = 0
		err := m.follow(ctx, address)
		if len(m.pending) > 0 {
			m.flush(nil, ctx.Err() == nil)
		}
		m.connection.Read = time.Now()
		m.connections = append(m.connections, m.connection)
		if ctx.Err() != nil {
			return nil
		}
		m.connection.Closed = m.connection.Read
		if err != nil {
			return err
		}
		if err := process.Sleep(ctx, max(m.retry, time.Second)); err != nil {
			return nil // it has been stopped
		}
	}
}

// follow reads one connection to its end. It returns an error for what a gateway must not send; a
// connection that breaks is none.
func (m *sampled) follow(ctx context.Context, address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil // it is being restarted
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })()
	request, err := http.NewRequest(http.MethodGet, "http://"+address+"/v1/events?watch="+watchName, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/event-stream")
	if m.at != nil {
		request.Header.Set("Last-Event-ID", m.at.Position.String())
	}
	if err := request.Write(conn); err != nil {
		return nil
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		return nil
	}
	if response.StatusCode != http.StatusOK {
		return nil // it drains
	}
	for events := received.New(response.Body, false); ; {
		e, err := events.Next()
		if err != nil {
			return nil
		}
		if err := m.take(e); err != nil {
			return err
		}
	}
}

// take processes one event, and its id.
func (m *sampled) take(e received.Event) error {
	if e.Kind == "goodbye" {
		m.retry = time.Duration(e.RetryMS) * time.Millisecond
	}
	if e.Type != 0 {
		m.pending = append(m.pending, e.Event)
		m.state.Apply(e.Event)
		if e.Type == stream.StatusChange && len(m.pending) == 1 {
			m.flush(nil, false)
		}
	}
	if e.ID == "" {
		return nil
	}
	positions, err := stream.ParsePositions(e.ID)
	if err != nil || len(positions) != 1 {
		return fmt.Errorf("the id %q: want one position (%v)", e.ID, err)
	}
	m.at = &streamtest.Mark{Position: positions[0], State: m.state.Clone()}
	m.flush(&streamtest.Mark{Position: positions[0]}, false)
	return nil
}

func (m *sampled) flush(mark *streamtest.Mark, cut bool) {
	c := m.connection
	c.Flushes = append(c.Flushes, streamtest.Flush{
		Order: len(c.Flushes) + 1, At: time.Now(), Events: m.pending, Mark: mark, Cut: cut,
		// What the replica had is not known here.
		Head: ^uint64(0), Horizon: ^uint64(0),
	})
	m.pending = nil
}
