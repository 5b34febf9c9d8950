package watch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/signal"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Config declares a watch. Name, and Source or View, are required; the zero value of
// any other field is its default.
type Config struct {
	// Name is what clients subscribe to; see CheckWatchName.
	Name string
	// SourceName is what the source is called in the configuration.
	SourceName string
	// SourceType is the type of the source in the configuration, such as etcd. Empty: it is unknown.
	SourceType string
	// Source is what the watch follows. It belongs to this watch alone.
	Source stream.Source
	// View says which other watch this one is a view of; nil: none.
	View *ViewConfig
	// CountedBy are the paths of the fields by which the watch counts another one; none: it does not count.
	CountedBy []string
	// Writer is set for a watch that can be written to.
	Writer stream.Writer
	// OnDemand: the first subscriber starts the watch, and it stops a while after
	// the last. Otherwise it is primed at once and kept.
	OnDemand bool
	// Required means that a process without this watch, or with an old state of it,
	// should not get requests: readiness counts it.
	Required bool
	// Late means that a reload has added the watch to a process that serves others. For
	// readiness, it counts as if it had been in sync until then.
	Late bool
	// Linger is how long an on-demand watch goes on without subscribers; 30 s
	// by default.
	Linger time.Duration
	// History bounds how far back readers can resume.
	History log.Retention
	// SnapshotTimeout is how long the upstream may take to complete a snapshot
	// before the status complains; 60 s by default. The snapshot goes on.
	SnapshotTimeout time.Duration
	// StaleAfter is how long a lost upstream may take to come back before the
	// status says so; 1 s by default.
	StaleAfter time.Duration
	// BehindTimeout is how long snapshots older than what was served are refused, as
	// from a lagging replica, before they are taken as a new epoch, as from a
	// restored upstream; 30 s by default.
	BehindTimeout time.Duration
	// Backoff is the wait between attempts to reach the upstream.
	Backoff Backoff
	// MaxBytes is the memory ceiling of the watch; 0: none. See memory.Ceiling for what
	// is counted, and memory.ErrExceeded for what happens at it.
	MaxBytes int64
	// Memory is a ceiling that the watch shares with others; nil: none.
	Memory *memory.Ceiling
	// LabelsAt is the path, in values, of the object that holds a resource's labels; see
	// view.Params. Empty: labels.
	LabelsAt string
	// Logger logs what happens to the upstream; nil: nothing is logged.
	Logger *slog.Logger
	// Journal keeps the watch for another process; nil: nothing does. A watch that runs on demand, a
	// view, and one of a template have none.
	Journal Journal
	Hooks
}

// Hooks are functions that a watch calls.
type Hooks struct {
	// Resynced is told of each connection to the upstream that has caught up, or that has ended
	// before; nil: nobody is. It is called by the watch, which waits for it.
	Resynced func(Resync)
	// Hide returns a message of the source without what operators must not be shown; nil:
	// messages are shown as they are.
	Hide func(message string) string
	// Close is called once the watch has ended and nothing reads its source any more, and
	// also if there is no such watch because of an error; nil: nothing has to be closed.
	Close func()
}

func (c Config) withDefaults() Config {
	c.Linger = cmp.Or(c.Linger, 30*time.Second)
	c.SnapshotTimeout = cmp.Or(c.SnapshotTimeout, time.Minute)
	c.StaleAfter = cmp.Or(c.StaleAfter, time.Second)
	c.BehindTimeout = cmp.Or(c.BehindTimeout, 30*time.Second)
	c.Backoff = c.Backoff.withDefaults()
	if c.Hide == nil {
		c.Hide = func(message string) string { return message }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Close == nil {
		c.Close = func() {}
	}
	return c
}

// Watch is one named collection, kept in step with its upstream, that any number
// of readers can follow. All its methods may be called from any goroutine.
type Watch struct {
	*root

	// Static after construction.
	of      *Watch     // the watch that this is a part of; nil: it is none
	inUse   func(bool) // of a requested view; see RequestedViewConfig
	log     *log.Log
	account *memory.Account

	// Atomic.
	subscribers atomic.Int64
	users       atomic.Int64  // subscribers, and callers that wait for the first snapshot
	done        signal.Signal // sent when ingest, or the part, has ended
	refused     atomic.Pointer[error]
}

// root is what a watch and its parts have in common.
type root struct {
	// Static after construction.
	config *Config
	*published
	recent *recentCommits // only find; nil for a view
	count  watchCounters
	demand chan struct{} // signals ingest: users may have changed
	cancel context.CancelFunc

	template *Template // that made the watch; nil: it was declared
	start    func()    // starts ingest; either this or discard is called, once
	discard  func()    // ends a watch that was not started

	// Atomic.
	unmatchable atomic.Uint64         // changes on which the filter of a view fails
	released    atomic.Int64          // when there was last a holder, as the template counts time
	removed     atomic.Bool           // it has been removed, or is about to be
	replaced    atomic.Bool           // and its name is still served
	viewOf      atomic.Pointer[Watch] // the watch that it is a view of; nil: it follows none now
}

// newWatch returns a watch that must be started or discarded. Its ingest runs until the registry is
// closed, or until its template, if any, removes it.
func newWatch(r *Registry, c Config, of *Template) (*Watch, error) {
	c = c.withDefaults()
	if err := stream.CheckWatchName(c.Name); err != nil {
		c.Close()
		return nil, err
	}
	if c.Source == nil && c.View == nil {
		c.Close()
		return nil, fmt.Errorf("watch %q has no source", c.Name)
	}
	w := &Watch{
		root:    &root{config: &c, count: newWatchCounters(), demand: make(chan struct{}, 1), template: of, published: &published{}},
		account: memory.NewAccount(c.MaxBytes, c.Memory),
	}
	ctx, cancel := context.WithCancel(r.ctx)
	w.cancel = cancel
	run := w.newFollower
	if c.View == nil {
		run = func(logger *slog.Logger, retire func() (bool, time.Duration)) func(context.Context) {
			return w.newIngest(r, logger, retire)
		}
	}
	var retire func() (bool, time.Duration)
	if of != nil {
		retire = func() (bool, time.Duration) { return of.retire(w) }
	}
	keep := run(c.Logger.With("watch", c.Name, "source", c.SourceName), retire)
	w.start = func() { start(func() { keep(ctx) }, w.ended) }
	w.discard = func() {
		w.cancel()
		w.account.Leave()
		w.ended()
	}
	return w, nil
}

// logConfig is that of the log.
func (w *Watch) logConfig() log.Config {
	return log.Config{Watch: w.config.Name, History: w.config.History, Account: w.account, Counted: w.counted, GoesOn: w.config.Journal != nil}
}

// newIngest makes the log, and returns what keeps it in step with the source.
func (w *Watch) newIngest(r *Registry, logger *slog.Logger, retire func() (bool, time.Duration)) (run func(context.Context)) {
	writer := log.NewWriter(w.logConfig())
	w.log, w.recent = writer.Log, &recentCommits{account: w.account}
	c := *w.config
	in := &ingest{
		config: c, source: c.Source, log: writer, account: w.account, count: w.count, published: w.published, recent: w.recent,
		wanted: w.wanted, demand: w.demand, peers: r.peersOf(c.SourceName), revisions: revisions{aliases: map[string]string{}}, logger: logger, retire: retire,
	}
	return in.run
}

// ended is called when ingest has ended.
func (w *Watch) ended() {
	defer w.done.Send()
	w.config.Close()
	if w.template != nil {
		w.template.ended(w)
	}
}

func (w *Watch) wanted() bool { return !w.config.OnDemand || w.users.Load() > 0 }

func (w *Watch) close() {
	w.cancel()
	<-w.Done()
}

// Name is what clients subscribe to.
func (w *Watch) Name() string { return w.config.Name }

// Template is what made the watch; nil: it was declared by its name.
func (w *Watch) Template() *Template { return w.template }

// Removed reports whether the registry no longer has the watch, and whether a watch of the same
// name is served instead. Done is closed a moment later. If several watches are removed
// together, Removed is true for all of them before any Done is closed.
func (w *Watch) Removed() (removed, replaced bool) {
	return w.removed.Load(), w.replaced.Load()
}

// markRemoved records that the registry has the content next now, without the watch.
func (w *Watch) markRemoved(next *registered) {
	w.replaced.Store(next.serves(w.Name()))
	w.removed.Store(true)
}

// SourceName is what the source is called in the configuration.
func (w *Watch) SourceName() string { return w.config.SourceName }

// SourceType is the type of the source in the configuration; empty: it is unknown.
func (w *Watch) SourceType() string { return w.config.SourceType }

// CountedBy returns the paths of the fields by which the watch counts another one; none: it does not count.
func (w *Watch) CountedBy() []string { return w.config.CountedBy }

// OnDemand reports whether the watch runs only while it has subscribers.
func (w *Watch) OnDemand() bool { return w.config.OnDemand }

// Required reports whether a process without the watch is not ready.
func (w *Watch) Required() bool { return w.config.Required }

// Late reports whether a reload has added the watch to a process that served others already.
func (w *Watch) Late() bool { return w.config.Late }

// LabelsAt is where the labels of resources are; see Config.LabelsAt.
func (w *Watch) LabelsAt() string { return w.config.LabelsAt }

// Writer is nil for a watch that can only be read.
func (w *Watch) Writer() stream.Writer { return w.config.Writer }

// Subscribers is how many subscriptions are open.
func (w *Watch) Subscribers() int { return int(w.subscribers.Load()) }

// Snapshot returns the newest committed state.
func (w *Watch) Snapshot() log.Snapshot { return w.log.Snapshot() }

// Status returns the freshness.
func (w *Watch) Status() stream.Status { return w.log.Status() }

// Upstream returns the state of the connection to the upstream.
func (w *Watch) Upstream() Upstream {
	if u := w.shown.Load(); u != nil {
		return *u
	}
	return Upstream{}
}

// RetainedBytes returns how many bytes the upstream keeps for the source of the watch, and whether that is
// known; see stream.Retaining.
func (w *Watch) RetainedBytes() (bytes int64, ok bool) {
	if source, keeps := w.config.Source.(stream.Retaining); keeps {
		return source.RetainedBytes()
	}
	return 0, false
}

// Loading returns how many resources a connection has received that has not caught up, about how many there
// will be, or 0 if that is not known, and whether there is such a connection.
func (w *Watch) Loading() (received, expected int64, ok bool) {
	n := w.received.Load()
	if n == nil {
		return 0, 0, false
	}
	return n.Load(), estimated(w.config.Source), true
}

// Full returns why the watch takes no more subscribers: it does not fit into its
// memory, and shows an older state, if any. It returns nil if the watch takes them.
func (w *Watch) Full() error { return w.full() }

// Memory is what the watch holds, against its own ceiling.
func (w *Watch) Memory() *memory.Ceiling { return w.account.Own() }

// SharedMemory is what this watch holds together with the others that share its ceiling.
func (w *Watch) SharedMemory() *memory.Ceiling { return w.account.Shared() }

// Reserve counts n bytes that are kept about the watch against its memory, if they fit; see
// memory.Account. They must be returned, also after the end of the watch.
func (w *Watch) Reserve(n int64) bool { return w.account.Reserve(n) }

// Return frees n bytes that Reserve counted.
func (w *Watch) Return(n int64) { w.account.Return(n) }

// Page returns a part of the state at one revision; see Log.Page.
func (w *Watch) Page(token string, size int) (log.Page, error) {
	return w.log.Page(token, size)
}

// Window returns the state of a window; see Log.Window.
func (w *Watch) Window() (log.Page, storage.Window) { return w.log.Window() }

// Stats returns the counters.
func (w *Watch) Stats() Stats {
	s := w.count.stats()
	if w.config.View != nil {
		s.Events["unmatchable"] = w.unmatchable.Load()
	}
	return s
}

// Changes counts what was committed since the start of the process. The first
// snapshot, and one that begins another revision order, are not changes.
func (w *Watch) Changes() uint64 { return w.count.changes.Load() }

// Incidents returns the last hundred incidents of the connection to the upstream,
// newest first. They must not be modified.
func (w *Watch) Incidents() []Incident { return w.recordedIncidents() }

// Digested returns the state with a digest, if it can still be asked for; see log.Log.Digested.
func (w *Watch) Digested(of digest.Digest) (*log.Digested, bool) { return w.log.Digested(of) }

// Changed is closed when there is something new: a change, or another status. Get it
// before looking, and nothing is missed.
func (w *Watch) Changed() <-chan struct{} { return w.log.Changed() }

// Done is closed when the watch has been removed, or its registry closed.
func (w *Watch) Done() <-chan struct{} { return w.done.Sent() }

// Ended reports whether Done is closed.
func (w *Watch) Ended() bool { return w.done.WasSent() }

// Subscribe returns a cursor into the watch. It starts a watch that runs on
// demand. Close it.
func (w *Watch) Subscribe(o log.SubscribeOptions) *log.Subscription {
	return w.log.Subscribe(o)
}

// counted is called when subscriptions are opened or closed, and when the number of
// readers that they serve changes.
func (w *Watch) counted(subscriptions, readers int) {
	for of := w; of != nil; of = of.of {
		of.subscribers.Add(int64(readers))
	}
	switch subscriptions {
	case 1:
		w.enter()
	case -1:
		w.release()
	}
}

func (w *Watch) enter() {
	if w.users.Add(1) == 1 {
		w.usedOrReleased(true)
	}
}

func (w *Watch) release() {
	if w.template != nil {
		w.released.Store(int64(w.template.now())) // before the watch can be removed
	}
	if w.users.Add(-1) == 0 {
		w.usedOrReleased(false)
	}
}

// usedOrReleased is called when the watch gets its first user, or loses its last one.
func (w *Watch) usedOrReleased(used bool) {
	switch {
	case w.of == nil:
		w.notifyIngest()
	case used:
		w.of.enter()
		w.inUse(true)
	default:
		w.of.release()
		w.inUse(false)
	}
}

// InUse reports whether the watch has a subscriber, or a caller that waits for its first
// snapshot.
func (w *Watch) InUse() bool { return w.users.Load() > 0 }

// notifyIngest tells ingest to look at the users again.
func (w *Watch) notifyIngest() {
	select {
	case w.demand <- struct{}{}:
	default:
	}
}

// Prime waits until the watch has a complete snapshot, and meanwhile starts a watch
// that runs on demand. A part of a watch then soon has what the watch had at the call. The error says why there is none yet.
func (w *Watch) Prime(ctx context.Context) error {
	w.enter()
	defer w.release()
	for {
		changed := w.log.Changed()
		if why := w.Refused(); why != nil {
			return why
		}
		if w.log.Snapshot().Primed() {
			w.catchUp(ctx)
			return w.Refused()
		}
		select {
		case <-changed:
		case <-w.Done():
			return fmt.Errorf("watch %q: %w", w.Name(), errStopped)
		case <-ctx.Done():
			return fmt.Errorf("watch %q is not primed: %s", w.Name(), w.Status().Full())
		}
	}
}
