package rest

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/history"
	"github.com/watchtide/watchtide/stream"
)

const (
	defaultHistory = 100  // changes
	maxHistory     = 1000 // changes
	// historyBytes is how many bytes of keys and values are enough for one answer.
	historyBytes = 1 << 20
	// historyEntries is how many entries of a log are read for one answer.
	historyEntries = 16 << 10
	// changeBytes is what a change takes in an answer besides its key and its value.
	changeBytes = 256
)

// History serves what has changed in a watch lately, newest first.
func (a *API) History(w http.ResponseWriter, r *http.Request) {
	ask, p := parseHistory(r)
	watch, p := a.watchOf(r, p)
	part, p := a.part(r, watch, authz.NarrowingOf(ask.query), p)
	if p == nil {
		p = part.Prime(r.Context())
	}
	if p != nil {
		problem.WriteForPath(w, r, p)
		return
	}
	a.writeHistory(w, r, part, ask)
}

// historyRequest is a request for a history, parsed and checked.
type historyRequest struct {
	history.Query
	query url.Values
}

func parseHistory(r *http.Request) (historyRequest, *problem.Problem) {
	ask := historyRequest{Query: history.Query{Bytes: historyBytes, Entries: historyEntries}}
	query, p := problem.ParseQuery(r.URL.RawQuery, authz.Narrowable("key", "key_encoding", "limit", "before", "after"))
	if p != nil {
		return ask, p
	}
	ask.query = query
	for _, read := range []func(*http.Request, url.Values) *problem.Problem{ask.readLimit, ask.readKey, ask.readBefore, ask.readAfter} {
		if p := read(r, query); p != nil {
			return ask, p.OnWatch(problem.PathParameter(r, "watch"))
		}
	}
	return ask, nil
}

func (h *historyRequest) readLimit(_ *http.Request, query url.Values) *problem.Problem {
	limit, p := problem.Uint(query, "limit", maxHistory)
	if h.Limit = int(limit); limit == 0 {
		h.Limit = defaultHistory
	}
	return p
}

func (h *historyRequest) readKey(_ *http.Request, query url.Values) *problem.Problem {
	wire := query.Get("key")
	if wire == "" && !query.Has("key_encoding") {
		return nil
	}
	key, err := stream.KeyFromWire(wire, query.Get("key_encoding"))
	if err != nil {
		return unary.KeyProblem(wire, err)
	}
	h.Key = &key
	return nil
}

func (h *historyRequest) readBefore(_ *http.Request, query url.Values) *problem.Problem {
	if !query.Has("before") || query.Get("before") == "" {
		return nil
	}
	c, err := history.ParseCursor(query.Get("before"))
	if err != nil {
		return problem.BadParameter("before", "%v", err)
	}
	h.Before = &c
	return nil
}

func (h *historyRequest) readAfter(r *http.Request, query url.Values) *problem.Problem {
	after := query.Get("after")
	if after == "" {
		return nil
	}
	if len(after) > stream.MaxPositionLength {
		return problem.BadParameter("after", "after has %d bytes: want a position as it was sent, of at most %d", len(after), stream.MaxPositionLength)
	}
	p, err := stream.ParsePosition(after)
	if err != nil {
		return problem.BadParameter("after", "%v", err)
	}
	if name := problem.PathParameter(r, "watch"); p.Watch != name {
		return problem.BadParameter("after", "after is a position in watch %q: want one in %q", p.Watch, name)
	}
	h.After = &p
	return nil
}

// writeHistory answers, once there is room for the answer.
func (a *API) writeHistory(w http.ResponseWriter, r *http.Request, part authz.Part, ask historyRequest) {
	past, p := part.Past()
	if p != nil {
		problem.Write(w, p)
		return
	}
	defer past.Release()
	ctx, answer := a.Answers.Attach(r.Context(), a.payer(r))
	defer answer.Release()
	var page history.Page
	expected := min(historyBytes, past.Bytes()) + changeBytes*int64(ask.Limit)
	err := answer.Read(ctx, expected, func() (int64, error) {
		var p *problem.Problem
		err := a.evaluating(ctx, past, func() { page, p = past.Read(ask.Query) })
		if err == nil && p != nil {
			err = p
		}
		return page.Bytes + changeBytes*int64(len(page.Changes)), err
	})
	if err != nil {
		problem.Write(w, problem.Of(err).OnWatch(part.Name()))
		return
	}
	out := wire.NewAnswerWriter(w, r, a.Streams.WriteTimeout, a.Streams.MinRate, a.Streams.Log)
	defer out.Close()
	out.Header().Set("Content-Type", "application/json")
	problem.NoStore(out.Header())
	_, _ = out.Write(appendHistory(nil, a.Service.Instance, past.Position(), page)) // it never fails
}

// evaluating calls read, once there is a processor for it if it evaluates a definition.
func (a *API) evaluating(ctx context.Context, past *authz.Past, read func()) error {
	if !past.Evaluates() {
		read()
		return nil
	}
	return limits.AnswerOf(ctx).Scan(ctx, read)
}

func appendHistory(dst []byte, instance string, at stream.Position, p history.Page) []byte {
	dst = appendString(append(dst, `{"instance":`...), instance)
	dst = appendString(append(dst, `,"watch":`...), at.Watch)
	dst = at.Append(append(dst, `,"position":"`...))
	dst = appendRevision(append(dst, '"'), at.AsOf)
	dst = appendSince(dst, p)
	dst = append(dst, `,"changes":[`...)
	for i := range p.Changes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendChange(dst, &p.Changes[i])
	}
	dst = append(dst, `],"next":"`...)
	if p.Next != nil {
		dst = append(dst, p.Next.String()...)
	}
	return append(dst, "\"}\n"...)
}

func appendSince(dst []byte, p history.Page) []byte {
	dst = append(dst, `,"complete_since":{"revision":"`...)
	dst = strconv.AppendUint(dst, p.Since, 10)
	dst = appendMoment(append(dst, '"'), "time", p.SinceAt)
	return append(dst, '}')
}

func appendChange(dst []byte, c *history.Change) []byte {
	kind := stream.Upsert
	if c.Deleted {
		kind = stream.Delete
	}
	key, encoding := stream.WireKey(c.Key)
	dst = appendString(append(dst, `{"type":`...), kind.String())
	dst = appendString(append(dst, `,"key":`...), key)
	dst = appendText(dst, "key_encoding", encoding)
	dst = appendRevision(dst, c.Revision)
	dst = appendMoment(dst, "committed_at", c.At)
	if c.Conflated {
		dst = append(dst, `,"conflated":true`...)
	}
	if !c.Deleted {
		dst = appendText(dst, "encoding", c.Encoding)
		dst = append(append(dst, `,"value":`...), c.Value...)
	}
	return append(dst, '}')
}

// appendMoment appends a member to an object, unless t is the zero time.
func appendMoment(dst []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":"`...)
	dst = t.UTC().Truncate(time.Millisecond).AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"')
}
