package rest

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
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
	a.changes(w, r, ask, p)
}

// CountChanges is Changes for counts of a watch.
func (a *API) CountChanges(w http.ResponseWriter, r *http.Request) {
	ask, p := parseLongPoll(r, authz.Countable("after", "wait"), authz.CountingOf)
	a.changes(w, r, ask, p)
}

// changes answers a long poll, unless there is already a problem.
func (a *API) changes(w http.ResponseWriter, r *http.Request, ask changesRequest, p *problem.Problem) {
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
	with := a.Streams.Authorizations.Enter(authz.IdentityOf(r.Context()), of)
	defer a.Streams.Leave(as, with)
	req := session.RequestOne(metrics.Poll, ask.watch, ask.after)
	parts, err := a.Streams.Open(&req, []authz.Part{of}, client)
	if err != nil {
		problem.Write(w, a.Streams.NotOpened(metrics.Poll, err).OnWatch(ask.watch))
		return
	}
	if p := a.Service.Lookup.Prime(r.Context(), parts[0]); p != nil {
		problem.Write(w, p)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	problem.NoStore(w.Header())
	if r.Method == http.MethodHead {
		return
	}
	c := session.New(a.Streams, req, with, parts)
	c.Identity, c.Request = a.Streams.Subscribers.Enter(from, r.UserAgent(), authz.IdentityOf(r.Context())), a.Streams.Tracing.ParentOf(r.Context())
	l := newList(a, w, r, ask, c)
	defer l.close()
	c.Answer = l
	poll := session.NewPump(c, l, r.Context().Done())
	poll.OnInputEnded(r.Context(), l.hurry)
	poll.Run()
	if !l.ended || l.Failure() != nil {
		panic(http.ErrAbortHandler) // a truncated answer must not look complete
	}
}

// changesRequest is a long poll request, parsed and checked.
type changesRequest struct {
	watch     string
	after     string // a position, or empty
	wait      time.Duration
	narrowing authz.Narrowing
}

func parseChanges(r *http.Request) (changesRequest, *problem.Problem) {
	ask, p := parseLongPoll(r, authz.CountedAt("/v1/watches/{watch}/counts/changes", authz.PollWindowable("after", "wait")), authz.PollWindowOf)
	if p == nil && ask.narrowing.HasOrder() && ask.after != "" && !strings.Contains(ask.after, "@") {
		return ask, problem.BadParameter("after", "after is no position: want one as it was sent, or the next of a window in %s", authz.PollAfterParameter).OnWatch(ask.watch)
	}
	return ask, p
}

// parseLongPoll reads a long poll that may have some parameters, of which narrow reads what is asked for.
func parseLongPoll(r *http.Request, known problem.Parameters, narrow func(url.Values) authz.Narrowing) (changesRequest, *problem.Problem) {
	ask := changesRequest{watch: problem.PathParameter(r, "watch")}
	query, p := problem.ParseQuery(r.URL.RawQuery, known)
	if p != nil {
		return ask, p.OnWatch(ask.watch)
	}
	if ask.wait, p = problem.Duration(query, "wait", defaultPollWait, maxPollWait); p != nil {
		return ask, p.OnWatch(ask.watch)
	}
	ask.after = query.Get("after")
	if len(ask.after) > stream.MaxPositionLength {
		p := problem.New(http.StatusRequestURITooLong, "after has %d bytes: want a position as it was sent, of at most %d", len(ask.after), stream.MaxPositionLength)
		p.Parameter = "after"
		return ask, p.OnWatch(ask.watch)
	}
	ask.narrowing = narrow(query)
	return ask, nil
}

// list is the answer to a long poll. Owned by its handler's goroutine.
//
// The events are written as they come, so that a snapshot is never held in memory for
// the sake of one client. The position is at the end of the object. Once the body has begun, it
// goes on to the next place where it may end, however long that takes. If it cannot, since the
// client leaves, may read no more, or the watch is removed, the answer is cut off, and the client
// asks again with the position that it has.
type list struct {
	// Static after construction.
	ctx           context.Context // of the request
	api           *API
	watch         *watch.Watch
	sub           *log.Subscription
	authorization *authz.Authorization
	began         time.Time
	until         time.Time // when to answer in any case; earlier if the client is in a hurry
	limit         time.Time // when to give up if there is nothing to answer with

	*wire.Writer
	answer   *limits.Answer
	busy     error // why there was no room for the answer
	slices   [][]byte
	aside    []byte    // events that are no reason to answer, each followed by a comma
	says     bool      // one of them is a status, or has the total of a window
	synced   bool      // the first end_of_snapshot was written
	wroteAny bool      // an event was written
	stalls   time.Time // when to give up an answer that has begun
	ended    bool      // the answer is complete
}

func newList(a *API, w http.ResponseWriter, r *http.Request, ask changesRequest, c session.Session) *list {
	return &list{
		ctx: r.Context(), api: a, watch: c.Follows[0].Watch, sub: c.Follows[0].Sub, authorization: c.Authorization,
		began: c.Began, until: c.Began.Add(ask.wait),
		limit:  c.Began.Add(max(ask.wait, a.Service.Lookup.PrimeWait(), a.Streams.AheadWait+time.Second)),
		Writer: wire.NewWriter(w, r, a.Streams.WriteTimeout), answer: a.Answers.Answer(a.payer(r)),
	}
}

func (l *list) close() {
	l.StopPace()
	l.answer.Release()
}

// hurry makes the list end with the events there are, without waiting for more.
func (l *list) hurry() { l.until = l.began }

// Complete implements session.Answer. The list is complete once it has an event and the client has
// everything up to its position.
func (l *list) Complete() bool { return l.busy != nil || l.wroteAny && whole(l.sub) }

// EndsAt implements session.Answer. A client whose position is still being decided on is kept beyond
// its wait, for a bounded time, and one whose answer has begun until that may end, also while the
// gateway drains.
func (l *list) EndsAt() time.Time {
	switch {
	case l.wroteAny:
		return l.stalls
	case l.api.Streams.Admission.IsDraining():
		return l.began
	case !l.sub.Synced():
		return l.limit
	}
	return l.until
}

// whole reports whether a client has exactly the state at the position.
func whole(sub *log.Subscription) bool {
	position, _ := sub.Position()
	return sub.Synced() && !position.Partial() && !sub.Uncovered()
}

// isNews reports whether the batch is a reason to answer. The initial freshness and
// a mere "caught up" are not.
func (l *list) isNews(b *log.Batch) bool {
	return l.wroteAny || l.synced || b.Count(stream.Reset)+b.Count(stream.Upsert)+b.Count(stream.Delete) > 0
}

// pollBytes is the memory that a long poll takes while it is answered. The events
// themselves belong to the log.
const pollBytes = 64 << 10

// enter waits for room for the answer before the first event. It returns false if
// there was none.
func (l *list) enter() bool {
	if l.answer.Granted() {
		return true
	}
	l.busy = l.answer.Reserve(l.ctx, pollBytes)
	if l.busy == nil {
		l.KeepPace(l.api.Streams.MinRate)
	}
	return l.busy == nil
}

// WriteBatch implements session.Encoder: the events are members of the list.
func (l *list) WriteBatch(c *session.Session, _ []byte) {
	if !l.isNews(&c.Batch) {
		l.setAside(&c.Batch)
	} else if l.enter() {
		l.tell(&c.Batch)
	}
	l.synced = l.sub.Synced()
}

func (l *list) setAside(b *log.Batch) {
	for e := range b.Events() {
		l.aside = append(frame.AppendData(l.aside, e), ',')
		l.says = l.says || e.Type == stream.StatusChange || e.Window
	}
}

// tell writes a batch, after the events that were set aside.
func (l *list) tell(b *log.Batch) {
	l.begin()
	l.slices = b.Append(l.slices[:0], frame.JSON, nil)
	for _, event := range l.slices {
		if l.wroteAny {
			l.Write([]byte(","))
		}
		l.wroteAny = true
		l.Write(event)
	}
	clear(l.slices)
	l.stalls = time.Now().Add(maxPollWait)
}

// begin opens the list before its first event, with the events that were set aside.
func (l *list) begin() {
	if l.wroteAny {
		return
	}
	l.Write([]byte(`{"events":[`))
	if len(l.aside) > 0 {
		l.Write(l.aside[:len(l.aside)-1])
		l.wroteAny = true
	}
	l.aside = nil
}

// WriteHello implements session.Encoder.
func (l *list) WriteHello(*session.Session) {}

// WriteHeartbeat implements session.Encoder.
func (l *list) WriteHeartbeat() {}

// Flush implements session.Output: the answer is sent when it is complete, or large.
func (l *list) Flush() {}

// WriteGoodbye implements session.Encoder. It ends the answer with the position after the events or,
// if nothing was delivered, the position that the client came with.
func (l *list) WriteGoodbye(c *session.Session, _ stream.GoodbyeReason) {
	if l.ended = !l.wroteAny || whole(l.sub); !l.ended || l.Failure() != nil {
		return
	}
	if l.busy != nil {
		problem.Write(l.Response(), problem.Of(l.busy).OnWatch(l.watch.Name()))
		return
	}
	position := c.AppendPosition(nil)
	if len(position) == 0 {
		problem.Write(l.Response(), l.empty())
		return
	}
	if !l.says {
		l.aside = nil // "caught up" alone is an empty list
	}
	l.begin()
	l.Write(slices.Concat([]byte(`],"position":"`), position, []byte("\"}\n")))
}

// empty returns the problem to answer with if there are no events.
func (l *list) empty() *problem.Problem {
	if l.authorization.ReasonToEnd(time.Now()) != "" {
		return problem.New(http.StatusUnauthorized, "the credential has ended, or lets its holder see something else by now").OnWatch(l.watch.Name())
	}
	if l.sub.Paused() {
		late := problem.New(http.StatusServiceUnavailable, "too many snapshots are on their way: come back later")
		late.RetryAfter = 2 * l.api.Streams.RetryHint()
		return late.OnWatch(l.watch.Name())
	}
	return l.api.Service.Lookup.NotPrimed(l.watch)
}
