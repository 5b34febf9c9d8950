package authz

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Found is a watch whose existence the principal of a request may know. What the request may
// read of it is a Part.
//
// Static after construction.
type Found struct {
	lookup *Lookup
	watch  *watch.Watch
	rules  rules // of the principal of the request
	plain  bool  // it is not to be compressed
}

// Name returns the name of the watch.
func (f Found) Name() string { return f.watch.Name() }

// Full returns the error of a watch that was given up because it did not fit into memory; nil:
// it fits.
func (f Found) Full() error { return f.watch.Full() }

// Use counts the watch for a client that is about to follow it, until the Use is released; nil: it
// does not count. It returns an error if the client has its share of the template.
func (f Found) Use(client string) (*watch.Use, *watch.FullError) {
	return f.watch.Use(f.rules.payer(client))
}

// Compressible reports whether answers about the watch may be compressed.
func (f Found) Compressible() bool { return !f.plain }

// Writable reports whether the watch can be written to; otherwise it has no Put and Delete.
// With a policy its source must be able to evaluate a condition for each write.
func (f Found) Writable() bool {
	w := f.watch.Writer()
	if w == nil || f.rules.policy == nil {
		return w != nil
	}
	_, conditional := w.(stream.ConditionalWriter)
	return conditional
}

// MayWrite reports whether some rule could allow a write to the watch, with the credential of
// the request.
func (f Found) MayWrite() bool {
	if f.rules.policy == nil {
		return f.Writable()
	}
	return f.Writable() && f.rules.who.Writes() && f.rules.policy.Changes(f.rules.who.Principal, f.rules.entry)
}

// MaxValue is the largest value that a write may carry, in bytes, over HTTP and over
// gRPC. A source may accept less.
const MaxValue = 16 << 20

// ValueLimit returns the largest value that a write may carry, in bytes.
func (f Found) ValueLimit() int64 { return valueLimit(f.watch) }

func valueLimit(w *watch.Watch) int64 {
	if l, limits := w.Writer().(stream.ValueLimiter); limits {
		return min(l.MaxValueBytes(), MaxValue)
	}
	return MaxValue
}

// definitionWait is the longest time for which a request waits for its definition.
const definitionWait = 10 * time.Second

// Narrow returns the part of the watch that a request of a client asks for.
func (f Found) Narrow(ctx context.Context, n Narrowing, client string) (Part, *problem.Problem) {
	may, ok := f.rules.definition()
	if !ok {
		return Part{}, f.lookup.denied(ctx, f.Name(), noRule)
	}
	part := Part{f, may, n, client}
	if !n.isEmpty() {
		d, p := f.define(ctx, may, n, client)
		if p != nil {
			return Part{}, p
		}
		part.definition = d
	}
	f.allowed(ctx, part)
	return part, nil
}

// define returns the definition of what a client selects of what it may read; nil: the whole
// watch.
func (f Found) define(ctx context.Context, may *view.Definition, n Narrowing, client string) (*view.Definition, *problem.Problem) {
	wait, cancel := context.WithTimeout(ctx, definitionWait)
	defer cancel()
	// Turns are by principal, not by address.
	d, err := f.lookup.definitions.parse(wait, may, n.paramsFor(f.watch), f.rules.payer(client))
	switch {
	case ctx.Err() != nil:
		return nil, problem.Of(ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		p := problem.New(http.StatusServiceUnavailable, "too many different views are asked for: there was no time for this one within %s; come back later", definitionWait).OnWatch(f.Name())
		p.RetryAfter = max(f.lookup.config.Retry, time.Second)
		return nil, p
	case err != nil:
		return nil, n.refused(f.watch, err)
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
func (f Found) Describe() Description {
	w, s := f.watch, f.watch.Snapshot()
	if may, ok := f.rules.definition(); !ok || may != nil {
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
