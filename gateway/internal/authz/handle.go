package authz

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/cluster"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Handle is a watch whose existence the principal of a request may know. What the request may
// read of it is a Part.
//
// Static after construction.
type Handle struct {
	lookup *Lookup
	watch  *watch.Watch
	rules  rules // of the principal of the request
	plain  bool  // it is not to be compressed
}

// Name returns the name of the watch.
func (h Handle) Name() string { return h.watch.Name() }

// Full returns the error of a watch that was given up because it did not fit into memory; nil:
// it fits.
func (h Handle) Full() error { return h.watch.Full() }

// Use counts the watch for a client that is about to follow it, until the Use is released; nil: it
// does not count. It returns an error if the client has its share of the template.
func (h Handle) Use(client string) (*watch.Use, *watch.FullError) {
	return h.watch.Use(h.rules.payer(client))
}

// Compressible reports whether answers about the watch may be compressed.
func (h Handle) Compressible() bool { return !h.plain }

// Writable reports whether the watch can be written to; otherwise it has no Put and Delete.
// With a policy its source must be able to evaluate a condition for each write.
func (h Handle) Writable() bool {
	w := h.watch.Writer()
	if w == nil || h.rules.policy == nil {
		return w != nil
	}
	_, conditional := w.(stream.ConditionalWriter)
	return conditional
}

// MayWrite reports whether some rule could allow a write to the watch, with the credential of
// the request.
func (h Handle) MayWrite() bool {
	if h.rules.policy == nil {
		return h.Writable()
	}
	if h.rules.clusterWrites() {
		return h.Writable() && h.rules.who.Writes() && h.author() != nil
	}
	return h.Writable() && h.rules.who.Writes() && h.rules.policy.Changes(h.rules.who.Principal, h.rules.entry)
}

// MaxValue is the largest value that a write may carry, in bytes, over HTTP and over
// gRPC. A source may accept less.
const MaxValue = 16 << 20

// ValueLimit returns the largest value that a write may carry, in bytes.
func (h Handle) ValueLimit() int64 { return valueLimit(h.watch) }

func valueLimit(w *watch.Watch) int64 {
	if l, limits := w.Writer().(stream.ValueLimiter); limits {
		return min(l.MaxValueBytes(), MaxValue)
	}
	return MaxValue
}

// definitionWait is the longest time for which a request waits for its definition.
const definitionWait = 10 * time.Second

// Narrow returns the part of the watch that a request of a client asks for.
func (h Handle) Narrow(ctx context.Context, n Narrowing, client string) (Part, *problem.Problem) {
	may, ok := h.rules.definition()
	switch {
	case !ok && !h.rules.isKnown():
		return Part{}, h.lookup.undecided(h.Name(), cluster.ErrUnknown)
	case !ok:
		return Part{}, h.lookup.denied(ctx, h.Name(), noRule)
	}
	g, err := n.grouping()
	if err != nil {
		return Part{}, n.refused(h.watch, err)
	}
	part := Part{h, may, n, client, rightTo(h.Name(), may), g}
	if !n.isEmpty() {
		d, p := h.define(ctx, may, n, client)
		if p != nil {
			return Part{}, p
		}
		part.definition = d
	}
	h.allowed(ctx, part)
	return part, nil
}

// define returns the definition of what a client selects of what it may read; nil: the whole
// watch.
func (h Handle) define(ctx context.Context, may *view.Definition, n Narrowing, client string) (*view.Definition, *problem.Problem) {
	wait, cancel := context.WithTimeout(ctx, definitionWait)
	defer cancel()
	// Turns are by principal, not by address.
	d, err := h.lookup.definitions.parse(wait, may, n.paramsFor(h.watch), h.rules.payer(client))
	switch {
	case ctx.Err() != nil:
		return nil, problem.Of(ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		p := problem.New(http.StatusServiceUnavailable, "too many different views are asked for: there was no time for this one within %s; come back later", definitionWait).OnWatch(h.Name())
		p.RetryAfter = max(h.lookup.config.Retry, time.Second)
		return nil, p
	case err != nil:
		return nil, n.refused(h.watch, err)
	case d.IsWhole():
		return nil, nil
	}
	return d, nil
}

// Description has the properties of a watch that a request may know, without its resources.
type Description struct {
	Source      string // name of its source
	Status      stream.Status
	Epoch       string
	Revision    uint64
	Count       int   // resources
	Bytes       int64 // memory held
	Subscribers int
	Changes     uint64 // since the start of the process
	Upstream    watch.Upstream
	Partial     bool // the request may see only a part of the watch
}

// Describe returns the properties of the watch that the request may know. Figures that would
// reveal something hidden are zero.
func (h Handle) Describe() Description {
	w, s := h.watch, h.watch.Snapshot()
	if may, ok := h.rules.definition(); !ok || may != nil {
		out := Description{Source: w.SourceName(), Status: s.Status(), Revision: s.Revision(), Upstream: w.Upstream(), Partial: true}
		if ok && s.Primed() {
			out.Epoch = may.Epoch(s.Epoch())
		}
		return out
	}
	return Description{
		Source: w.SourceName(), Status: s.Status(), Epoch: s.Epoch(), Revision: s.Revision(), Count: s.Count(), Bytes: s.Bytes(),
		Subscribers: w.Subscribers(), Changes: w.Changes(), Upstream: w.Upstream(),
	}
}
