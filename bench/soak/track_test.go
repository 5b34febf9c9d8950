//go:build servers

package soak

import (
	"errors"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// track is the state of one subscriber of one watch, across connections.
type track struct {
	// Static after construction.
	of     *collection
	client string
	part   *part

	at    *stream.Position // that of the last id; nil: there is none
	given time.Time        // when it arrived
	held  streamtest.State // the state at that id
	since []stream.Event   // the events after it
	final streamtest.State // that it is to reach; nil: before the end

	connection *streamtest.Connection // current one
	pending    []stream.Event         // of the current flush
	began      time.Time              // of that
}

// open starts a connection from the known state.
func (t *track) open(slow bool) {
	c := &streamtest.Connection{Client: t.client, Replica: replica, Slow: slow, Opened: time.Now()}
	if t.at != nil {
		c.From = &streamtest.Mark{Position: *t.at, State: t.held.Clone()}
		c.Begin = t.state()
	}
	if t.at == nil {
		t.held, t.since = streamtest.State{}, nil
	}
	t.connection, t.pending = c, nil
}

// state returns the current state.
func (t *track) state() streamtest.State {
	s := t.held.Clone()
	for _, e := range t.since {
		s.Apply(e)
	}
	return s
}

// event processes an event.
func (t *track) event(e stream.Event) {
	if own(e) {
		t.connection.Slow = true // a subscriber with this status does not get everything at once
	} else {
		t.of.said.add(e)
	}
	if len(t.pending) == 0 {
		t.began = time.Now()
	}
	t.pending = append(t.pending, e)
	t.since = append(t.since, e)
	if e.Type == stream.StatusChange && len(t.pending) == 1 {
		t.flush(nil, false) // an id may be alone: nothing may follow for long
	}
}

// own reports whether an event is a status of this subscriber, and not of the
// watch: it is too slow, or waits until the snapshots of others have been sent.
func own(e stream.Event) bool {
	return e.Type == stream.StatusChange &&
		(e.State == stream.CatchingUp || strings.HasPrefix(e.Reason, "the snapshot waits for its turn"))
}

// pass processes an id.
func (t *track) pass(p stream.Position) {
	if t.at != nil && *t.at == p && len(t.pending) == 0 {
		return
	}
	for _, e := range t.since {
		t.held.Apply(e)
	}
	t.at, t.given, t.since = &p, time.Now(), nil
	if len(t.pending) == 0 {
		t.began = t.given
	}
	t.flush(&streamtest.Mark{Position: p}, false)
}

func (t *track) flush(m *streamtest.Mark, cut bool) {
	c := t.connection
	c.Flushes = append(c.Flushes, streamtest.Flush{
		Order: len(c.Flushes) + 1, At: t.began, Events: t.pending, Mark: m, Cut: cut,
		// There is one replica, so nothing is ahead of it; its horizon is
		// unknown here.
		Head: ^uint64(0), Horizon: ^uint64(0),
	})
	t.pending = nil
}

// close ends the connection: it was cut off, or it is still open at the end of
// the run.
func (t *track) close(open bool) *streamtest.Connection {
	c := t.connection
	if len(t.pending) > 0 {
		t.flush(nil, !open)
	}
	c.Read = time.Now()
	if !open {
		c.Closed = c.Read
	}
	t.connection = nil
	return c
}

// forget makes the next connection start from nothing.
func (t *track) forget() { t.at, t.held, t.since = nil, streamtest.State{}, nil }

// check runs all checkers on a connection. Settled: it must have reached the final state.
func (t *track) check(c *streamtest.Connection, settled bool) error {
	t.of.noted()
	h := &streamtest.History{
		Truth: t.truth(time.Since(c.Opened) + stalest), Freshness: map[string][]streamtest.Freshness{replica: t.of.said.all()},
		Heartbeat: 2 * heartbeat, StaleAfter: 2 * time.Second, Settled: settled,
	}
	h.Add(c)
	return streamtest.CheckAll(h)
}

// truth returns the truth of the last part of the run, which is at least as long as a time.
func (t *track) truth(last time.Duration) *streamtest.Truth {
	all := t.of.truth.Now()
	if !t.part.definition.IsWhole() {
		all.Keep(t.of.transactionsIn(2*last) + filling)
	}
	return t.part.of(all)
}

// resets counts those of a connection, by reason.
func resets(c *streamtest.Connection, count func(reason string)) {
	for _, f := range c.Flushes {
		for _, e := range f.Events {
			if e.Type == stream.Reset {
				count(e.Reason)
			}
		}
	}
}

var errHungUp = errors.New("hung up as planned")
