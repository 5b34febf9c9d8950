package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// How long a long poll waits for a change: by default, and at most.
const (
	defaultPollWait = 30 * time.Second
	maxPollWait     = 5 * time.Minute
)

// Changes serves the long poll: the events after a position, and the new
// position. It answers as soon as there is news, or with an empty list once the wait
// is over, the gateway drains, or its client may read no more. An answer with changes
// is complete only where the state is that of one revision.
func (a *API) Changes(w http.ResponseWriter, r *http.Request) {
	ask, p := parseChanges(r)
	if p != nil {
		problem.Write(w, p)
		return
	}
	from := a.Proxies.OfRequest(r)
	client := limits.ClientOf(from.Addr())
	watch, p := a.Service.Lookup.Find(r.Context(), ask.watch, client.String())
	if p != nil {
		problem.Write(w, a.Streams.Unfound(metrics.Poll, p))
		return
	}
	of, p := watch.Narrow(r.Context(), ask.narrowing, client.String())
	if p != nil {
		problem.Write(w, p)
		return
	}
	as, refused := a.Streams.Admit(r.Context(), client, watch)
	if refused != nil {
		problem.Write(w, a.Streams.Refused(metrics.Poll, refused).OnWatch(ask.watch))
		return
	}
	with := a.Streams.Passes.Enter(authz.IdentityOf(r.Context()), of)
	defer a.Streams.Leave(as, with)
	part, err := a.Streams.OpenPart(of, client, ask.after)
	if err != nil {
		problem.Write(w, a.Streams.NotOpened(metrics.Poll, err).OnWatch(ask.watch))
		return
	}
	if p := a.Service.Lookup.Prime(r.Context(), part); p != nil {
		problem.Write(w, p)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	problem.NoStore(w.Header())
	if r.Method == http.MethodHead {
		return
	}
	a.Streams.Metrics.StreamOpened(metrics.Poll)
	defer a.Streams.Metrics.StreamClosed(metrics.Poll)
	who := a.Streams.Subscribers.Enter(from, r.UserAgent(), authz.IdentityOf(r.Context()))
	ask.view = introspection.ViewOf(ask.watch, of.Shared(part))
	poll := newPoll(r.Context(), a, part, ask, with, who, wire.NewWriter(w, r, a.Streams.WriteTimeout))
	poll.answer = a.Answers.Answer(a.payer(r))
	defer poll.close()
	poll.run(r.Context())
	if !poll.ended || poll.out.Failure() != nil {
		panic(http.ErrAbortHandler) // a truncated answer must not look complete
	}
}

// changesRequest is a long poll request, parsed and checked.
type changesRequest struct {
	watch     string
	after     *stream.Position
	invalid   bool
	wait      time.Duration
	narrowing authz.Narrowing
	view      introspection.ViewRef
}

func parseChanges(r *http.Request) (changesRequest, *problem.Problem) {
	ask := changesRequest{watch: problem.PathParameter(r, "watch")}
	query, p := problem.ParseQuery(r.URL.RawQuery, authz.Narrowable("after", "wait"))
	if p != nil {
		return ask, p.OnWatch(ask.watch)
	}
	if ask.wait, p = problem.Duration(query, "wait", defaultPollWait, maxPollWait); p != nil {
		return ask, p.OnWatch(ask.watch)
	}
	after := query.Get("after")
	if len(after) > stream.MaxPositionLength {
		p := problem.New(http.StatusRequestURITooLong, "after has %d bytes: want a position as it was sent, of at most %d", len(after), stream.MaxPositionLength)
		p.Parameter = "after"
		return ask, p.OnWatch(ask.watch)
	}
	ask.after, ask.invalid = session.ResumeFrom(ask.watch, after)
	ask.narrowing = authz.NarrowingOf(query)
	return ask, nil
}

// poll is one long poll. Owned by its handler's goroutine.
//
// The events are written as they come, so that a snapshot is never held in memory for
// the sake of one client. The position is at the end of the object.
type poll struct {
	// Static after construction.
	api   *API
	watch *watch.Watch
	after *stream.Position
	until time.Time // when to answer in any case
	limit time.Time // when to give up if there is nothing to answer with
	out   *wire.Writer

	session.Progress
	answer   *limits.Answer
	busy     error // why there was no room for the answer
	slices   [][]byte
	aside    []byte          // events that are no reason to answer, each followed by a comma
	hurry    <-chan struct{} // closed when the client stops sending: it may have disconnected
	status   bool            // one of them is a status
	wroteAny bool            // an event was written
	ended    bool            // the answer is complete
}

func newPoll(ctx context.Context, a *API, w *watch.Watch, ask changesRequest, with *authz.Pass, who introspection.Identity, out *wire.Writer) *poll {
	sub := w.Subscribe(log.SubscribeOptions{
		Resume: ask.after, Invalid: ask.invalid, AheadWait: a.Streams.AheadWait,
	})
	p := &poll{
		api: a, watch: w, after: ask.after, out: out,
		Progress: session.NewProgress(ctx, a.Streams, metrics.Poll, with, who, w, ask.view, sub),
	}
	p.until = p.Began.Add(ask.wait)
	p.limit = p.Began.Add(max(ask.wait, a.Service.Lookup.PrimeWait(), a.Streams.AheadWait+time.Second))
	return p
}

func (p *poll) close() {
	p.out.StopPace()
	p.answer.Release()
	p.Metrics.BytesOut(metrics.Poll, p.out.Sent())
	p.Delivered.Bytes = uint64(p.out.Sent())
	p.Show()
	p.api.Streams.Subscribers.Remove(p.Published, p.reasonEnded())
	p.Progress.Close()
	if p.out.TimedOut() {
		p.Metrics.WriteTimeout(metrics.Poll)
	}
}

// reasonEnded returns why a poll ended without an answer, or "" if it was answered,
// which is its normal end.
func (p *poll) reasonEnded() introspection.DepartureReason {
	switch {
	case p.out.TimedOut():
		return introspection.LeftUnread
	case p.ended && p.out.Failure() == nil:
		return ""
	}
	return introspection.LeftByItself
}

// run answers. Once the body has begun, it goes on to the next place where it may end,
// however long that takes. If it cannot, since the client leaves, may read no more, or the
// watch is removed, the answer is cut off, and the client asks again with the position that
// it has.
func (p *poll) run(ctx context.Context) {
	p.hurry = netconn.InputEnded(ctx)
	for p.collect(ctx) && p.wait(ctx) {
	}
	if p.out.Failure() == nil && ctx.Err() == nil && (!p.wroteAny || p.whole()) {
		p.finish()
		p.ended = true
	}
}

// whole reports whether the client has exactly the state at the position.
func (p *poll) whole() bool {
	position, _ := p.Sub.Position()
	return p.Sub.Synced() && !position.Partial() && !p.Sub.Uncovered()
}

// collect writes the events there are. It returns false if the answer is complete or
// cannot be completed. It is complete once it has an event and the client has everything
// up to its position.
func (p *poll) collect(ctx context.Context) bool {
	for p.Pass.ReasonToEnd(time.Now()) == "" && p.Next() {
		if p.isNews() {
			if !p.enter(ctx) {
				return false
			}
			p.tell()
		} else {
			p.setAside()
		}
		if p.out.Failure() != nil || p.wroteAny && p.whole() {
			return false
		}
	}
	return true
}

// isNews reports whether the batch is a reason to answer. The initial freshness and
// a mere "caught up" are not.
func (p *poll) isNews() bool {
	b := &p.Batch
	return p.wroteAny || p.Synced() || b.Count(stream.Reset)+b.Count(stream.Upsert)+b.Count(stream.Delete) > 0
}

// pollBytes is the memory that a long poll takes while it is answered. The events
// themselves belong to the log.
const pollBytes = 64 << 10

// enter waits for room for the answer before the first event. It returns false if
// there was none.
func (p *poll) enter(ctx context.Context) bool {
	if p.answer.Granted() {
		return true
	}
	p.busy = p.answer.Reserve(ctx, pollBytes)
	if p.busy == nil {
		p.out.KeepPace(p.api.Streams.MinRate)
	}
	return p.busy == nil
}

func (p *poll) setAside() {
	for e := range p.Batch.Events() {
		p.aside = append(frame.AppendData(p.aside, e), ',')
		p.status = p.status || e.Type == stream.StatusChange
	}
	p.Wrote(0)
}

// tell writes a batch as members of the list, after the events that were set aside.
func (p *poll) tell() {
	p.begin()
	p.slices = p.Batch.Append(p.slices[:0], frame.JSON, nil)
	for _, event := range p.slices {
		if p.wroteAny {
			p.out.Write([]byte(","))
		}
		p.wroteAny = true
		p.out.Write(event)
	}
	clear(p.slices)
	p.Wrote(0)
}

// begin opens the list before its first event, with the events that were set aside.
func (p *poll) begin() {
	if p.wroteAny {
		return
	}
	p.out.Write([]byte(`{"events":[`))
	if len(p.aside) > 0 {
		p.out.Write(p.aside[:len(p.aside)-1])
		p.wroteAny = true
	}
	p.aside = nil
}

// wait waits for news. It returns false if it is time to answer or the client
// disconnected. A client whose position is still being decided on is kept beyond its
// wait, for a bounded time, and one whose answer has begun until that may end.
func (p *poll) wait(ctx context.Context) bool {
	until, draining := p.until, p.api.Streams.Admission.Draining
	switch {
	case p.wroteAny:
		until, draining = time.Now().Add(maxPollWait), nil
	case !p.Sub.Synced():
		until = p.limit
	}
	until = session.Earlier(until, p.Pass.EndsAt())
	timer := time.NewTimer(time.Until(session.Earlier(until, p.Sub.Deadline())))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-p.hurry:
		// Answer with the events there are, without waiting for more.
		p.hurry, p.until = nil, p.Began
		return true
	case <-p.watch.Done():
		return false
	case <-draining:
		return false
	case <-p.Pass.Ended():
		return false
	case <-p.Changed():
	case <-timer.C:
	}
	return time.Now().Before(until)
}

// empty returns the problem to answer with if there are no events.
func (p *poll) empty() *problem.Problem {
	if p.Pass.ReasonToEnd(time.Now()) != "" {
		return problem.New(http.StatusUnauthorized, "the credential has ended, or lets its holder see something else by now").OnWatch(p.watch.Name())
	}
	if p.Sub.Held() {
		late := problem.New(http.StatusServiceUnavailable, "too many snapshots are on their way: come back later")
		late.RetryAfter = 2 * p.api.Streams.RetryHint()
		return late.OnWatch(p.watch.Name())
	}
	return p.api.Service.Lookup.NotPrimed(p.watch)
}

// finish ends the answer with the position after the events or, if nothing was
// delivered, the position that the client came with.
func (p *poll) finish() {
	if p.busy != nil {
		problem.Write(p.out.Response(), problem.Of(p.busy).OnWatch(p.watch.Name()))
		return
	}
	position, ok := p.Sub.Position()
	if !ok && p.after != nil {
		position, ok = *p.after, true
	}
	if !ok {
		problem.Write(p.out.Response(), p.empty())
		return
	}
	if !p.status {
		p.aside = nil // "caught up" alone is an empty list
	}
	p.begin()
	tail := position.Append([]byte(`],"position":"`))
	p.out.Write(append(tail, "\"}\n"...))
	p.out.End()
}
