package consul

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// polling is one Watch call: one blocking query after the other, and probes beside them.
//
// Owned by the goroutine that runs Watch, except for running.
type polling struct {
	// Static after construction.
	source  *Queried
	api     *api
	at      string // the epoch that the watch had
	sink    stream.Sink
	ctx     context.Context
	close   context.CancelCauseFunc // the first cause is kept
	answers chan asked
	probes  chan probed
	running sync.WaitGroup // its goroutines

	begun bool                    // the sink has a snapshot
	held  int64                   // bytes of what was served, as the sink was told
	mode  mode                    // of the query under way
	token string                  // of the query under way
	stop  context.CancelCauseFunc // ends it
	why   [2]string               // what the server says of its freshness, to the query and to the probe
	said  string                  // to the sink
}

// asked is an answer, or why there is none.
type asked struct {
	*answer
	err   error
	token string // with which it was asked for
}

// probed is what a probe has found.
type probed struct {
	why   string // why the server cannot answer; empty: it can
	token string // that the file holds
}

// freshness is told by:
const (
	byQuery = iota
	byProbe
)

func newPolling(ctx context.Context, s *Queried, at string, sink stream.Sink) *polling {
	p := &polling{
		source: s, at: at, sink: sink,
		answers: make(chan asked), probes: make(chan probed),
	}
	p.ctx, p.close = context.WithCancelCause(ctx)
	p.api = newAPI(&s.config, sink, p.close)
	return p
}

// run polls until an error.
func (p *polling) run() error {
	if err := p.begin(); err != nil {
		return err
	}
	p.running.Go(p.probe)
	for {
		p.ask()
		if err := p.wait(); err != nil {
			return err
		}
	}
}

// begin sends a snapshot.
func (p *polling) begin() (err error) {
	s := p.source
	if p.token, err = s.config.token(); err != nil {
		return err
	}
	cluster, err := p.api.cluster(p.ctx, p.token)
	if err != nil {
		return err
	}
	s.enter(cluster, p.at)
	a, err := p.api.ask(p.ctx, mode{consistent: true}, p.token)
	if err != nil {
		return err
	}
	defer p.api.release(a)
	if a.index == 0 {
		return errNoIndex
	}
	p.mode = mode{index: a.index}
	return p.update(a)
}

// errNoIndex means that an answer is not one of Consul.
var errNoIndex = fmt.Errorf("%w: the answer has no %s: want the HTTP API of Consul", stream.ErrInvalid, indexHeader)

// startOver sends an answer as the first one of another order.
func (p *polling) startOver(a *answer) error {
	p.source.renew(a.items)
	for n := range a.items {
		if a.items[n].sum != ([16]byte{}) {
			a.items[n].revision = 0 // it is counted in the new order
		}
	}
	c, err := p.source.compare(a.items, a.complete)
	if err != nil {
		return err
	}
	return p.snapshot(a.items, c, a.filtered)
}

// snapshot sends everything.
func (p *polling) snapshot(items []item, c changes, filtered bool) error {
	if err := p.sink.Reset(p.source.epochs.name()); err != nil {
		return err
	}
	for n := range items {
		if err := p.sink.Upsert(items[n].resource()); err != nil {
			return err
		}
	}
	if err := p.sink.Commit(c.revision); err != nil {
		return err
	}
	p.source.keep(&c, filtered)
	p.begun = true
	p.charge()
	return nil
}

// charge tells the sink how much is remembered of what was served.
func (p *polling) charge() {
	p.sink.Charge(p.source.held - p.held)
	p.held = p.source.held
}

// ask starts the next query.
func (p *polling) ask() {
	ctx, stop := context.WithCancelCause(p.ctx)
	m, token := p.mode, p.token
	p.stop = stop
	p.running.Go(func() {
		defer stop(nil)
		a, err := p.api.ask(ctx, m, token)
		select {
		case p.answers <- asked{a, err, token}:
		case <-p.ctx.Done():
		}
	})
}

// wait waits for the answer.
func (p *polling) wait() error {
	for {
		select {
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		case found := <-p.probes:
			if err := p.probedAs(found); err != nil {
				return err
			}
		case a := <-p.answers:
			return p.answered(a)
		}
	}
}

// probedAs handles what a probe has found.
func (p *polling) probedAs(found probed) error {
	if found.token != p.token {
		// What may be read is another part. The index does not change with that.
		p.token, p.mode = found.token, mode{consistent: true}
		p.stop(errRotated)
	}
	return p.fresh(byProbe, found.why)
}

// answered handles the answer of the query under way.
func (p *polling) answered(a asked) error {
	if errors.Is(a.err, errRotated) {
		return nil
	}
	if a.err != nil {
		return a.err
	}
	defer p.api.release(a.answer)
	if a.token != p.token {
		return nil // the next query is asked with another one
	}
	if a.index < p.mode.index {
		// The server is behind, or was restored; or what had the newest index is gone.
		p.mode = mode{consistent: true}
		return p.pause(retryEvery)
	}
	if a.index == 0 {
		return errNoIndex
	}
	if err := p.update(a.answer); err != nil {
		return err
	}
	next, err := p.source.config.token()
	if err != nil {
		return err
	}
	p.mode = mode{index: a.index}
	if next != p.token {
		p.token, p.mode = next, mode{consistent: true}
	}
	// A list that changes all the time is read half of the time.
	return p.pause(max(a.took, leastPause))
}

// leastPause is the time between two queries.
const leastPause = 10 * time.Millisecond

// pause waits for about a time.
func (p *polling) pause(d time.Duration) error {
	return adapter.PauseFor(p.ctx, d/2+rand.N(d))
}

// update sends what an answer changes. That the server is behind is said before it, and that it is not
// any more after it.
func (p *polling) update(a *answer) error {
	c, err := p.source.compare(a.items, a.complete)
	if err != nil {
		return err
	}
	if why := p.source.doubt(&c, a); why != "" {
		return &hidden{why}
	}
	if a.why != "" {
		if err := p.fresh(byQuery, a.why); err != nil {
			return err
		}
	}
	if err := p.apply(a, &c); err != nil {
		return err
	}
	return p.fresh(byQuery, a.why)
}

func (p *polling) apply(a *answer, c *changes) error {
	switch {
	case c.broken != "":
		return p.startOver(a)
	case !p.begun:
		return p.snapshot(a.items, *c, a.filtered)
	case c.revision == p.source.committed:
		p.source.filtered = a.filtered
		return nil
	}
	if err := p.send(c); err != nil {
		return err
	}
	p.source.keep(c, a.filtered)
	p.charge()
	return nil
}

// send sends changes as one transaction. There may have been others in between.
func (p *polling) send(c *changes) error {
	if len(c.upserts) > 0 && c.revision > p.source.committed+1 {
		p.sink.Conflated()
	}
	for _, key := range c.deletes {
		if err := p.sink.Delete(key, c.revision); err != nil {
			return err
		}
	}
	for n := range c.upserts {
		if err := p.sink.Upsert(c.upserts[n].resource()); err != nil {
			return err
		}
	}
	return p.sink.Commit(c.revision)
}

// fresh reports how fresh the server is.
func (p *polling) fresh(by int, why string) error {
	p.why[by] = why
	now := p.why[byQuery]
	if now == "" {
		now = p.why[byProbe]
	}
	if now == p.said {
		return nil
	}
	p.said = now
	if now == "" {
		return p.sink.Status(stream.InSync, "")
	}
	return p.sink.Status(stream.Stale, now)
}

// probe asks for the leader again and again, since a blocking query is as silent as a dead server.
func (p *polling) probe() {
	for {
		found, err := p.probeOnce()
		if err != nil {
			p.close(err)
			return
		}
		select {
		case p.probes <- found:
		case <-p.ctx.Done():
			return
		}
		every := p.source.config.ProbeInterval
		if found.why != "" {
			every = retryEvery
		}
		if adapter.PauseFor(p.ctx, every) != nil {
			return
		}
	}
}

func (p *polling) probeOnce() (probed, error) {
	token, err := p.source.config.token()
	if err != nil {
		return probed{}, err
	}
	leader, err := p.api.leader(p.ctx, token)
	var no *refusal
	switch {
	case errors.As(err, &no):
		return probed{why: no.Error(), token: token}, nil
	case err != nil:
		return probed{}, err
	case leader == "":
		return probed{why: noLeader, token: token}, nil
	}
	return probed{token: token}, nil
}
