package histories

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goclient "github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/streamtest"
)

// program is a subscriber with the Go client, behind a load balancer. It resumes by digest: what differs it finds out with
// requests, each of which may reach another node, be refused or cut off, and the history goes on meanwhile. Either its
// replica follows the watch, or it hands over events, of one or two watches.
type program struct {
	// Static after construction.
	world     *world
	name      string
	link      *link
	transport *http.Transport
	copies    []*copied
	handsOver bool
	stop      context.CancelFunc
	ended     chan struct{} // closed when it hands over no more; of a replica at once

	passes   atomic.Int32 // how many requests for what differs are answered before those
	refusals atomic.Int32 // how many of the next requests for what differs are refused
	gone     atomic.Int32 // of how many of them the state is gone

	mu     sync.Mutex // guards the following fields
	last   string     // the ID of the last event that was handed over
	untrue error
}

// copied is what a program has of one watch.
type copied struct {
	part    *part
	replica *goclient.Replica[goclient.Resource]
	shown   []display
}

// display is what a replica showed at one moment.
type display struct {
	revision string
	state    streamtest.State // without revisions, of which a digest says nothing
	at       time.Duration
}

// begin begins to follow.
func (p *program) begin() error {
	p.transport = &http.Transport{DialContext: dial, DisableKeepAlives: true}
	c, err := goclient.New("http://"+p.link.host, goclient.Options{Transport: p})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop, p.ended = stop, make(chan struct{})
	of := p.copies[0]
	if !p.handsOver {
		close(p.ended)
		of.replica = c.Replica(ctx, of.part.watchName(), of.part.view())
		return nil
	}
	options := []goclient.WatchOption{goclient.Verifying(), of.part.view()}
	for i, one := range p.copies {
		one.replica = goclient.NewReplica(one.part.watchName())
		if i > 0 {
			options = append(options, goclient.And(one.part.watchName()))
		}
	}
	go p.handOver(c.Watch(ctx, of.part.watchName(), options...))
	return nil
}

// view is what narrows the watch, for the Go client.
func (p *part) view() goclient.View {
	return goclient.View{Prefix: p.params.Prefix, Filter: p.params.Filter, Fields: p.params.Fields}
}

func (p *program) handOver(events func(func(goclient.Event, error) bool)) {
	defer close(p.ended)
	for e, err := range events {
		if err != nil {
			p.broke(fmt.Errorf("its stream has ended: %w", err))
			continue
		}
		p.fails(string(e.Reason))
		for _, c := range p.copies {
			if err := c.replica.Apply(e); err != nil {
				p.broke(err)
			}
		}
		if e.ID != "" {
			p.mu.Lock()
			p.last = e.ID
			p.mu.Unlock()
		}
	}
}

// fails checks why a stream has ended. A program that was sent all that differs has what its server has.
func (p *program) fails(why string) {
	if strings.Contains(why, "another digest") {
		p.broke(errors.New(why))
	}
}

func (p *program) broke(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !errors.Is(err, context.Canceled) && p.untrue == nil {
		p.untrue = fmt.Errorf("%s: %w", p.name, err)
	}
}

// close ends what it follows.
func (p *program) close() {
	p.stop()
	<-p.ended
	for _, c := range p.copies {
		c.replica.Close()
	}
	p.link.cut()
	links.Delete(p.link.host)
}

// RoundTrip implements http.RoundTripper.
func (p *program) RoundTrip(r *http.Request) (*http.Response, error) {
	_, asks, is := strings.Cut(r.URL.Path, "/digests/")
	_, asks, _ = strings.Cut(asks, "/")
	switch {
	case !is:
		p.continues(r.Header.Get("Last-Event-ID"))
		return p.transport.RoundTrip(r)
	case p.passes.Add(-1) >= 0:
	case p.refusals.Add(-1) >= 0:
		return refusal(r, http.StatusServiceUnavailable), nil
	case p.gone.Add(-1) >= 0:
		return refusal(r, http.StatusGone), nil
	}
	response, err := p.transport.RoundTrip(r)
	if err == nil {
		reached.add(1, "requests for what differs (%s): %d", asks, response.StatusCode)
		p.world.say("%s is answered with %d (%s)", p.name, response.StatusCode, r.URL.Path)
	}
	return response, err
}

// refusal is the answer of a server that does not do what it was asked for.
func refusal(r *http.Request, status int) *http.Response {
	text := fmt.Sprintf(`{"status":%d,"detail":"refused"}`, status)
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/problem+json"}},
		Body:   io.NopCloser(bytes.NewBufferString(text)),
	}
}

// continues checks that a stream continues from what was handed over, or from a place that does not exist.
func (p *program) continues(id string) {
	if !p.handsOver || id == "" {
		return
	}
	p.mu.Lock()
	last := strings.Split(p.last, ",")
	p.mu.Unlock()
	for place := range strings.SplitSeq(id, ",") {
		if !slices.Contains(last, place) && !strings.HasSuffix(place, "@none-0") {
			p.broke(fmt.Errorf("its stream continues from %q, and what was handed over is that at %q", id, last))
		}
	}
}

// note keeps what it shows. Everything is at rest.
func (p *program) note() {
	for _, c := range p.copies {
		now, ok := c.now()
		p.fails(c.replica.Freshness().Reason)
		if n := len(c.shown); ok && (n == 0 || c.shown[n-1].revision != now.revision || !c.shown[n-1].state.Equal(now.state)) {
			now.at = time.Since(p.world.began)
			c.shown = append(c.shown, now)
			p.world.say("%s shows %d resources at %s", p.name, len(now.state), now.revision)
		}
	}
}

// now returns what is shown; false: there is nothing yet.
func (c *copied) now() (s display, ok bool) {
	if s.revision = c.replica.Revision(); s.revision == "" {
		return s, false
	}
	s.state = streamtest.State{}
	for id, r := range c.replica.All() {
		s.state[id] = streamtest.Version{Value: streamtest.ValueText([]byte(r.Value))}
	}
	return s, true
}

// check checks that all that it showed were states of the upstream, and that it shows the newest one if all nodes have it.
func (p *program) check() error {
	p.mu.Lock()
	err := p.untrue
	p.mu.Unlock()
	for _, c := range p.copies {
		for _, s := range c.shown {
			revision, bad := strconv.ParseUint(s.revision, 10, 64)
			if why := c.part.history.Truth.Differs(revision, s.state); bad != nil || why != "" {
				err = errors.Join(err, fmt.Errorf("%s: it showed at %v what the upstream never had at %s (%s): %s", p.name, s.at, s.revision, c.part.name, why))
				break
			}
		}
		if now, _ := c.now(); c.part.history.Settled && !c.newest(now) {
			_, last := c.part.history.Truth.Newest()
			err = errors.Join(err, fmt.Errorf("%s: it shows %v at %q at the end (%s), want %v at %d; it is %+v, %v", p.name, now.state, now.revision,
				c.part.name, last.After, last.Revision, c.replica.Freshness(), c.replica.Err()))
		}
	}
	return err
}

// newest reports whether this is the newest state of the upstream.
func (c *copied) newest(s display) bool {
	_, last := c.part.history.Truth.Newest()
	return s.state.SameValues(last.After)
}
