package authz

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/cluster"
	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// Views opens the views that clients ask for.
type Views interface {
	// Open returns the view of w that d selects. It has the name of w. The error is a
	// views.Refusal if a limit is reached.
	Open(w *watch.Watch, d *view.Definition, r views.Request) (*watch.Watch, error)
	// Count returns the counts of a watch or of a view; see views.Views.
	Count(w *watch.Watch, g *view.Grouping, r views.Request) (*watch.Watch, error)
	// Shared returns the definition that all requests for a view share; see views.Views.
	Shared(of *watch.Watch, d *view.Definition) *view.Definition
	// SharedGrouping returns the grouping that all requests for counts share; see views.Views.
	SharedGrouping(of *watch.Watch, g *view.Grouping) *view.Grouping
}

// Lookup finds the watches that requests name, and the views that requests narrow them to.
//
// Static after construction.
type Lookup struct {
	config      Config
	definitions *definitions
}

// Config has the dependencies and the settings of a Lookup.
type Config struct {
	Watches *watch.Registry
	Policy  *access.Policy   // nil: everybody may do everything
	Rights  *cluster.Rights  // of the cluster that decides about some watches; nil: nobody may read these
	Audit   *access.AuditLog // nil: nobody is told
	Views   Views
	// Uncompressed are the entries of the configuration whose watches are not compressed.
	Uncompressed []string

	PrimeWait time.Duration // how long a request waits for a watch that is not primed
	Retry     time.Duration // in answers with 503
	// Refusals logs what is refused; nil: nothing does.
	Refusals *RefusalLog
	// Refused counts a request that lacks a credential; nil: nothing counts them.
	Refused func(access.Reason)
}

// New returns a Lookup.
func New(c Config) *Lookup { return &Lookup{config: c, definitions: newDefinitions()} }

// With returns a Lookup with another configuration. Both share one cache of definitions.
func (l *Lookup) With(c Config) *Lookup { return &Lookup{config: c, definitions: l.definitions} }

// Refusals returns the log of what is refused.
func (l *Lookup) Refusals() *RefusalLog { return l.config.Refusals }

// PrimeWait returns how long a request waits for a watch that is not primed.
func (l *Lookup) PrimeWait() time.Duration { return l.config.PrimeWait }

// Find returns the watch of that name for a request of a client. A template may make it. Otherwise
// it returns a 404 that suggests the nearest name, a 503 if the template can make no more watches
// now, or a 429 if the client has its share of them. A watch that the principal may not see is
// answered like one that does not exist.
func (l *Lookup) Find(ctx context.Context, name, client string) (Handle, *problem.Problem) {
	entry, declared := l.config.Watches.Declared(name)
	may, visible, p := l.rulesFor(ctx, entry, name)
	switch {
	case declared && p != nil:
		return Handle{}, p
	case declared && !visible:
		return Handle{}, l.denied(ctx, name, noRule)
	}
	w, err := l.config.Watches.OpenFor(may.payer(client), name)
	if err != nil {
		return Handle{}, l.unopened(ctx, name, err)
	}
	return Handle{lookup: l, watch: w, rules: may, plain: slices.Contains(l.config.Uncompressed, entry)}, nil
}

// Check returns the same 404 as Find for a watch that does not exist, or that the principal may
// not see. It makes no watch.
func (l *Lookup) Check(ctx context.Context, name string) *problem.Problem {
	entry, declared := l.config.Watches.Declared(name)
	_, visible, p := l.rulesFor(ctx, entry, name)
	switch {
	case !declared:
		return l.denied(ctx, name, noSuchWatch)
	case p != nil:
		return p
	case !visible:
		return l.denied(ctx, name, noRule)
	}
	return nil
}

// CommittedAt returns the entry of the configuration that a watch comes from, and when a
// revision of it became visible; see watch.Watch.CommittedAt. It makes no watch. It is for the
// metrics only: a principal that may see a part of a watch must not learn of other revisions.
func (l *Lookup) CommittedAt(ctx context.Context, name string, revision uint64) (entry string, at time.Time, ok bool, p *problem.Problem) {
	if p := l.Check(ctx, name); p != nil {
		return "", time.Time{}, false, p
	}
	w, open := l.config.Watches.Watch(name)
	if !open {
		return "", time.Time{}, false, nil
	}
	entry, _ = l.config.Watches.Declared(name)
	at, ok = w.CommittedAt(revision)
	return entry, at, ok, nil
}

// All returns the open watches that the principal may see. The name of a watch of a template
// reveals what others look at, so only those who may read all of it see it. A watch of which it is not
// known in time whether they may see it is left out.
func (l *Lookup) All(ctx context.Context) []Handle {
	var all []Handle
	l.prepare(ctx)
	ctx, cancel := context.WithTimeout(ctx, l.config.PrimeWait)
	defer cancel()
	for _, w := range l.config.Watches.Watches() {
		entry, made := w.Name(), w.Template() != nil
		if made {
			entry = w.Template().Name()
		}
		may, visible, _ := l.rulesFor(ctx, entry, w.Name())
		if visible && (!made || may.readAll()) {
			all = append(all, Handle{lookup: l, watch: w, rules: may})
		}
	}
	return all
}

// prepare has it looked at what a cluster lets the principal of a request read, of all watches at once.
func (l *Lookup) prepare(ctx context.Context) {
	who := IdentityOf(ctx)
	if l.config.Policy == nil || who == nil {
		return
	}
	for _, w := range l.config.Watches.Watches() {
		if entry, _ := l.config.Watches.Declared(w.Name()); who.May(w.Name()) {
			l.rules(who, entry).isKnown()
		}
	}
}

// LargestValue returns the size of the largest value that any watch accepts, in bytes.
func (l *Lookup) LargestValue() int64 {
	most := int64(0)
	for _, w := range l.config.Watches.Watches() {
		if w.Writer() != nil {
			most = max(most, valueLimit(w))
		}
	}
	for _, t := range l.config.Watches.Templates() {
		most = max(most, t.LargestValue())
	}
	return most
}

func (l *Lookup) unopened(ctx context.Context, name string, err error) *problem.Problem {
	if errors.Is(err, watch.ErrNoWatch) {
		return l.denied(ctx, name, noSuchWatch)
	}
	p := problem.New(http.StatusServiceUnavailable, "watch %q cannot be opened now", name)
	if full := (*watch.FullError)(nil); errors.As(err, &full) {
		p = problem.New(http.StatusServiceUnavailable, "%s", full.Error())
		if full.OfClient {
			p = problem.New(http.StatusTooManyRequests, "%s", full.Error())
		}
		p.Full = full
	}
	p.OnWatch(name)
	p.RetryAfter = max(2*l.config.Retry, time.Second)
	return p
}

// Known returns the watch of that name, for operators, who may see every watch.
func (l *Lookup) Known(name string) (*watch.Watch, *problem.Problem) {
	if w, ok := l.config.Watches.Watch(name); ok {
		return w, nil
	}
	return nil, noWatch(name, l.config.Watches.Watches())
}

// unknown returns a 404 that names only watches that the principal may see. Without a
// credential it is a 401, whether there is such a watch or not.
func (l *Lookup) unknown(ctx context.Context, name string) *problem.Problem {
	if who := IdentityOf(ctx); l.config.Policy != nil && who != nil && who.IsAnonymous() {
		return l.missing("no watch of this name can be seen without a credential: send Authorization: Bearer").OnWatch(name)
	}
	var watches []*watch.Watch
	for _, f := range l.All(ctx) {
		watches = append(watches, f.watch)
	}
	return noWatch(name, watches)
}

// missing returns a 401 to a client without a credential, and counts it.
func (l *Lookup) missing(text string) *problem.Problem {
	if l.config.Refused != nil {
		l.config.Refused(access.CredentialMissing)
	}
	return Refused(access.NewRefusal(access.CredentialMissing, text))
}

// noWatch suggests no watch of a template: its name comes from somebody's request.
func noWatch(name string, watches []*watch.Watch) *problem.Problem {
	var names []string
	for _, w := range watches {
		if w.Template() == nil {
			names = append(names, w.Name())
		}
	}
	p := problem.New(http.StatusNotFound, "there is no watch %q; GET /v1/watches lists them", name).OnWatch(name)
	if near := suggest.Nearest(name, names); near != "" {
		p = problem.New(http.StatusNotFound, "there is no watch %q: did you mean %q?", name, near).OnWatch(name)
	}
	return p
}

// Prime waits until an open watch is primed. It starts an on-demand watch. If the watch is not
// primed in time, it returns a 503 with Retry-After.
func (l *Lookup) Prime(ctx context.Context, w *watch.Watch) *problem.Problem {
	if w.Snapshot().Primed() && w.Of() == nil {
		return nil
	}
	wait, cancel := context.WithTimeoutCause(ctx, l.config.PrimeWait, errNotPrimed)
	defer cancel()
	if err := w.Prime(wait); err != nil && ctx.Err() == nil {
		if many := (*views.TooManyGroups)(nil); errors.As(err, &many) {
			return problem.BadParameter(byParameter, "%s", many.Error()).OnWatch(w.Name())
		}
		return l.NotPrimed(w)
	}
	if err := ctx.Err(); err != nil {
		return problem.Of(err)
	}
	return nil
}

var errNotPrimed = errors.New("the watch was not primed in time")

// NotPrimed returns a 503 with the reason why there is nothing to serve yet.
func (l *Lookup) NotPrimed(w *watch.Watch) *problem.Problem {
	why := ""
	if reason := w.Snapshot().Status().Reason; reason != "" {
		why = ": " + reason
	}
	lacks := "has not received its first complete snapshot yet"
	if whole := w.Of(); whole != nil && whole.Snapshot().Primed() {
		lacks = "is primed, but the view of it is not"
	}
	p := problem.New(http.StatusServiceUnavailable, "watch %q %s%s", w.Name(), lacks, why).OnWatch(w.Name())
	p.RetryAfter = max(l.config.Retry, time.Second)
	return p
}
