package authz

import (
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/history"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// Past is what has changed lately in the part of a watch that a request reads. Release it.
//
// Owned by the goroutine of the request.
type Past struct {
	// Static after construction.
	part  Part
	state log.Snapshot
	held  *log.Pin
}

// Past returns the recent past of the part, as of now. It needs no view of the watch.
func (p Part) Past() (*Past, *problem.Problem) {
	s := p.watch.Snapshot()
	if !s.Primed() { // an on-demand watch that has just stopped
		return nil, p.lookup.NotPrimed(p.watch)
	}
	return &Past{part: p, state: s, held: s.Pin()}, nil
}

// Release lets go of the state.
func (p *Past) Release() { p.held.Release() }

// Bytes is the memory that the log of the watch holds.
func (p *Past) Bytes() int64 { return p.state.Bytes() }

// Evaluates reports whether reading evaluates a definition.
func (p *Past) Evaluates() bool { return p.part.definition != nil }

// Position is the place of a reader that has everything up to now.
func (p *Past) Position() stream.Position {
	at := p.state.Position()
	if d := p.part.definition; d != nil {
		at.Epoch = d.Epoch(at.Epoch)
	}
	return at
}

// pastReads is how long one page is read, about.
const pastReads = 25 * time.Millisecond

// Read reads a page. It may end early, since reading takes long, or since the memory of the
// state is needed.
func (p *Past) Read(q history.Query) (history.Page, *problem.Problem) {
	epoch := p.Position().Epoch
	switch {
	case q.Before != nil && q.Before.Epoch != epoch:
		return history.Page{}, p.gone("before")
	case q.After != nil && q.After.Epoch != epoch:
		return history.Page{}, p.gone("after")
	}
	until := time.Now().Add(pastReads)
	page := history.Read(p.state, p.part.definition, q, func() bool {
		_, held := p.held.Snapshot()
		return held && time.Now().Before(until)
	})
	if page.TooCostly {
		return page, problem.BadParameter("filter", "the filter costs too much for the history of so many values: want a cheaper one, or the history of a key").OnWatch(p.part.Name())
	}
	if page.Next != nil {
		page.Next.Epoch = epoch
	}
	return page, nil
}

// gone is the answer to a place in another order of revisions.
func (p *Past) gone(parameter string) *problem.Problem {
	gone := problem.New(http.StatusGone, "%s is a place in another history: the watch or what is read of it has begun again since; ask without it", parameter)
	gone.Parameter = parameter
	return gone.OnWatch(p.part.Name())
}
