//go:build servers

package soak

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/received"
	"github.com/watchtide/watchtide/stream"
)

const (
	replica = "the gateway"
	// stalest is the maximum age of the id from which a subscriber resumes.
	stalest = 30 * time.Second
	// longest is how long a sampled subscriber stays; one that stalls, half as long
	// again.
	longest = 50 * time.Second
)

// subscriber is one whose events are all checked. Owned by its goroutine.
type subscriber struct {
	// Static after construction.
	run    *run
	name   string
	tracks []*track
	ndjson bool
	gzip   bool
	scale  float64 // of all times: a short run has short ones

	old  *memory // some earlier id
	left int     // events until it disconnects; -1: it does not
}

// memory is an id, and the state at that id.
type memory struct {
	given  time.Time
	tracks []track
}

// live connects and disconnects until ctx ends.
func (s *subscriber) live(ctx context.Context) {
	for ctx.Err() == nil {
		s.chooseBegin()
		s.visit(ctx, s.planVisit())
		wait(ctx, s.upTo(3*time.Second))
	}
}

// upTo is a random time: often a short one.
func (s *subscriber) upTo(d time.Duration) time.Duration {
	f := rand.Float64()
	return time.Duration(f * f * float64(d) * s.scale)
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// chooseBegin decides from which id it resumes: mostly its last one.
func (s *subscriber) chooseBegin() {
	switch n := rand.IntN(10); {
	case n == 0 || s.oldest() > stalest:
		for _, t := range s.tracks {
			t.forget()
		}
	case n < 3 && s.old != nil && time.Since(s.old.given) < stalest:
		for i, t := range s.tracks {
			m := &s.old.tracks[i]
			t.at, t.given, t.held, t.since = m.at, m.given, m.held.Clone(), nil
		}
	}
}

// oldest is the age of the oldest of its positions.
func (s *subscriber) oldest() (age time.Duration) {
	for _, t := range s.tracks {
		if t.at != nil {
			age = max(age, time.Since(t.given))
		}
	}
	return age
}

// visit is one connection from its start to its end.
func (s *subscriber) visit(ctx context.Context, v visit) {
	for _, t := range s.tracks {
		t.open(v.slow())
	}
	s.left = v.events
	err := s.follow(ctx, v)
	s.run.totals.ended(s, v, err)
	for _, t := range s.tracks {
		s.run.check(t, t.close(false), false)
	}
}

// follow connects and reads until the visit or the stream is over.
func (s *subscriber) follow(ctx context.Context, v visit) error {
	conn, err := net.Dial("tcp", s.run.gateway.http)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	g := newVisitor(ctx, conn.(*net.TCPConn), v)
	defer g.leave()
	body, err := s.ask(g)
	if err != nil {
		return err
	}
	return s.read(received.New(body, s.ndjson))
}

// ask sends the request and returns the body of the answer.
func (s *subscriber) ask(g *visitor) (io.Reader, error) {
	request, err := http.NewRequest(http.MethodGet, "http://"+s.run.gateway.http+"/v1/events?"+s.query(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", map[bool]string{false: "text/event-stream", true: "application/x-ndjson"}[s.ndjson])
	if id := s.id(); id != "" {
		request.Header.Set("Last-Event-ID", id)
	}
	if s.gzip {
		request.Header.Set("Accept-Encoding", "gzip")
	}
	if err := request.Write(g.conn); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReader(g), request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s", errRefused, response.Status)
	}
	if response.Header.Get("Content-Encoding") != "gzip" {
		return response.Body, nil
	}
	s.run.totals.compressed.Add(1)
	return gzip.NewReader(response.Body)
}

var errRefused = errors.New("refused")

func (s *subscriber) query() string {
	values := url.Values{}
	for _, t := range s.tracks {
		values.Add("watch", t.of.watch)
		suffix := ""
		if len(s.tracks) > 1 {
			suffix = "." + t.of.watch
		}
		t.part.add(values, suffix)
	}
	return values.Encode()
}

// id is that of the whole stream.
func (s *subscriber) id() string {
	var positions []string
	for _, t := range s.tracks {
		if t.at != nil {
			positions = append(positions, t.at.String())
		}
	}
	return strings.Join(positions, ",")
}

// read processes events until the stream ends.
func (s *subscriber) read(events *received.Reader) error {
	goodbye := ""
	for {
		f, err := events.Next()
		switch {
		case errors.Is(err, io.EOF) && goodbye != "":
			return fmt.Errorf("%w: %s", errGoodbye, goodbye)
		case errors.Is(err, io.EOF):
			return errors.New("the stream ended without a goodbye")
		case err != nil:
			return err
		case f.Kind == "goodbye":
			goodbye = cmp.Or(f.Reason, "no reason")
		}
		if s.left == 0 {
			return errHungUp
		}
		if err := s.take(f); err != nil {
			return err
		}
	}
}

var errGoodbye = errors.New("goodbye")

// take processes one event, and its id.
func (s *subscriber) take(f received.Event) error {
	if t := s.track(f.Watch); t != nil && f.Type != 0 {
		t.event(f.Event)
		s.left = max(s.left-1, -1)
		s.run.totals.events.Add(1)
	}
	if f.ID == "" {
		return nil
	}
	positions, err := stream.ParsePositions(f.ID)
	if err != nil {
		return fmt.Errorf("%w: %w", errWrong, err)
	}
	for _, p := range positions {
		t := s.track(p.Watch)
		if t == nil {
			return fmt.Errorf("%w: the id %q names %q, which was not requested", errWrong, f.ID, p.Watch)
		}
		t.pass(p)
	}
	if s.arrived() {
		return errHungUp
	}
	if rand.IntN(200) == 0 {
		s.remember()
	}
	return nil
}

// errWrong is an answer that the gateway must never send.
var errWrong = errors.New("a wrong answer")

func (s *subscriber) track(watch string) *track {
	for _, t := range s.tracks {
		if t.of.watch == watch {
			return t
		}
	}
	return nil
}

// remember stores the present id, to resume from it later.
func (s *subscriber) remember() {
	m := &memory{given: time.Now()}
	for _, t := range s.tracks {
		m.tracks = append(m.tracks, track{at: t.at, given: t.given, held: t.held.Clone()})
	}
	s.old = m
}

// converge resumes once more from the last id, and stays until it has the state
// of the upstreams, which does not change any more.
func (s *subscriber) converge(ctx context.Context) error {
	for _, t := range s.tracks {
		_, newest := t.truth(0).Newest()
		t.final = newest.After.Clone()
		t.open(false)
	}
	s.left = -1
	err := s.follow(ctx, visit{events: -1, stay: patience})
	for _, t := range s.tracks {
		if diff := t.state().Diff(t.final); diff != "" {
			return fmt.Errorf("%s did not reach the state of %s; its stream: %w; its state: %s", s.name, t.of.watch, err, diff)
		}
		s.run.check(t, t.close(true), true)
	}
	return nil
}

// arrived reports whether it has the final state of the upstreams, and the id.
func (s *subscriber) arrived() bool {
	for _, t := range s.tracks {
		if t.final == nil || len(t.since) > 0 || t.held.Diff(t.final) != "" {
			return false
		}
	}
	return true
}
