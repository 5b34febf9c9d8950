package authz

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/time/rate"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream/watch"
)

// Limits of the moves of one stream.
const (
	movesPerSecond = 10
	movesBurst     = 20
)

// MoveParameters are the parameters of a request that moves a window.
var MoveParameters = problem.Parameters{Once: []string{watchParameter, limitParameter, offsetParameter, afterParameter}}

const watchParameter = "watch"

// Move is the window to which an open stream is to move.
//
// Static after construction.
type Move struct {
	watch                string // empty: the only one of the stream of which it has a window
	limit, offset, after string // empty: not given
}

// MoveOf reads the parameters of a request that moves a window.
func MoveOf(query url.Values) Move {
	return Move{query.Get(watchParameter), query.Get(limitParameter), query.Get(offsetParameter), query.Get(afterParameter)}
}

// moved returns the narrowing to another window of the same order. Its limit is the former one unless
// another one is given.
func (n Narrowing) moved(m Move) Narrowing {
	n.as, n.of = nil, "" // the request names no watches in its parameters
	n.params.Offset, n.params.After = m.offset, m.after
	if m.limit != "" {
		n.params.Limit = m.limit
	}
	return n
}

// moving is what an authorization knows of the moves of its stream.
//
// Guarded by the mutex of the authorization.
type moving struct {
	rate   *rate.Limiter // nil: there was no move
	number uint64        // of the last move that was asked for
}

// Move makes an open stream of the principal of a request go on with another window of one of its
// watches, which open opens. It returns the number of the move. Of several moves of a stream that are
// asked for at the same time the last one counts.
func (t *Table) Move(ctx context.Context, l *Lookup, id string, m Move, open func(Part) (*watch.Watch, *problem.Problem)) (uint64, *problem.Problem) {
	p, who := t.find(id), IdentityOf(ctx)
	if p == nil || !p.heldBy(who) || (who == nil) != (l.config.Policy == nil) {
		return 0, noStream()
	}
	index, refused := p.windowOf(m.watch)
	if refused != nil {
		return 0, refused
	}
	if refused = l.Check(ctx, p.watches[index]); refused != nil {
		return 0, refused
	}
	number, wait := p.nextMove(time.Now())
	if wait > 0 {
		refused = problem.New(http.StatusTooManyRequests, "the windows of this stream are moved too often: want %d moves a second at most", movesPerSecond)
		refused.RetryAfter = max(wait, time.Second)
		return 0, refused
	}
	for range moveAttempts {
		before := p.part(index)
		next, refused := before.moved(ctx, l, m, p.Holder())
		if refused != nil {
			return 0, refused
		}
		w, refused := open(next)
		if refused == nil {
			refused = l.Prime(ctx, w)
		}
		if refused != nil {
			return 0, refused
		}
		switch moved, ended := p.move(index, before, next, w, number); {
		case ended:
			return 0, noStream()
		case moved:
			return number, nil
		}
	}
	refused = problem.New(http.StatusServiceUnavailable, "what may be seen of the watch changes too often to move the window: come back later").OnWatch(p.watches[index])
	refused.RetryAfter = max(l.config.Retry, time.Second)
	return 0, refused
}

// moveAttempts is how often a move is made again since what may be seen has changed in the meantime.
const moveAttempts = 3

// noStream is the same for a stream of somebody else, whose name nobody else is to find.
func noStream() *problem.Problem {
	return problem.New(http.StatusNotFound, "this replica has no such stream of yours: it has ended, or it is one of another replica; open another one with the window that you want")
}

// find returns the authorization of an open stream; nil: there is none.
func (t *Table) find(id string) *Authorization {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[id]
}

// heldBy reports whether the principal of an identity holds the authorization, which has not ended.
func (p *Authorization) heldBy(who *credential.Identity) bool {
	holder := p.Holder()
	if p.ending.Load() != nil || (holder == nil) != (who == nil) {
		return false
	}
	return who == nil || holder.Is(who.Principal)
}

// part returns the part that the stream follows, or is about to, of the watch at an index.
func (p *Authorization) part(index int) Part {
	p.evaluating.Lock()
	defer p.evaluating.Unlock()
	return p.parts[index]
}

// windowOf returns the index of the watch of that name, of which the stream has a window; empty: the only
// one of which it has one.
func (p *Authorization) windowOf(name string) (int, *problem.Problem) {
	p.evaluating.Lock()
	defer p.evaluating.Unlock()
	found := -1
	for i, part := range p.parts {
		switch {
		case name == part.Name() && !part.IsWindow():
			return 0, problem.BadParameter(watchParameter, "the stream has no window of watch %q: want one that it has with order and limit", name).OnWatch(name)
		case !part.IsWindow() || name != "" && name != part.Name():
		case found >= 0:
			return 0, problem.BadParameter(watchParameter, "the stream has several windows: want watch=%s or another of them", p.watches[found])
		default:
			found = i
		}
	}
	switch {
	case found < 0 && name != "":
		return 0, problem.BadParameter(watchParameter, "watch %q is not part of this stream", name).OnWatch(name)
	case found < 0:
		return 0, problem.New(http.StatusBadRequest, "the stream has no window: want one that was opened with order and limit")
	}
	return found, nil
}

// nextMove returns the number of the next move, or how long to wait for it.
func (p *Authorization) nextMove(now time.Time) (number uint64, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moving.rate == nil {
		p.moving.rate = rate.NewLimiter(movesPerSecond, movesBurst)
	}
	turn := p.moving.rate.ReserveN(now, 1)
	if wait = turn.DelayFrom(now); wait > 0 {
		turn.CancelAt(now)
		return 0, wait
	}
	p.moving.number++
	return p.moving.number, 0
}

// moved returns the part that is another window of the same view, under the rules of l.
func (p Part) moved(ctx context.Context, l *Lookup, m Move, who *credential.Identity) (Part, *problem.Problem) {
	entry, _ := l.config.Watches.Declared(p.Name())
	h, n := Handle{lookup: l, watch: p.watch, rules: l.rules(who, entry), plain: p.plain}, p.narrowing.moved(m)
	ctx = WithAction(ctx, access.Window)
	if may, ok := h.rules.definition(); !ok || rightTo(p.Name(), may) != p.right {
		return h.Narrow(ctx, n, p.client) // it is not a window of the same any more
	}
	d, err := p.definition.Moved(n.paramsFor(h.watch))
	if err != nil {
		return Part{}, n.refused(h.watch, err)
	}
	next := Part{Handle: h, definition: d, narrowing: n, client: p.client, right: p.right}
	h.allowed(ctx, next)
	return next, nil
}

// move makes the stream follow next, which was made from before, unless there is a newer move. It is not
// moved if its principal may see something else since.
func (p *Authorization) move(index int, before, next Part, w *watch.Watch, number uint64) (moved, ended bool) {
	p.evaluating.Lock()
	defer p.evaluating.Unlock()
	now := p.parts[index]
	switch {
	case p.ending.Load() != nil:
		return false, true
	case now.right != before.right || next.right != before.right:
		return false, false
	case p.moved[index] > number:
		return true, false
	}
	if p.moved == nil {
		p.moved = map[int]uint64{}
	}
	p.moved[index], p.parts[index] = number, next
	keep := now.definition.OrderID() == next.definition.OrderID()
	p.change([]Switch{{Index: index, Part: next, Watch: w, Keep: keep, Move: number}})
	return true, false
}

// Postpone gives a switch back that the stream cannot make yet. A newer one takes precedence.
func (p *Authorization) Postpone(s Switch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if newer, there := p.next[s.Index]; there {
		s = newer.after(s)
	}
	if p.next == nil {
		p.next = map[int]Switch{}
	}
	p.next[s.Index] = s
	p.waiting.Store(true)
}

// after returns s, for a stream that has not made a former switch of the same watch.
func (s Switch) after(former Switch) Switch {
	s.Keep, s.Move = s.Keep && former.Keep, max(s.Move, former.Move)
	return s
}
