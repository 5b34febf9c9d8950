package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// ingest keeps one log in step with one upstream. It is a small state machine,
//
//	idle ─► connecting ─► snapshot ─► live ─► lost ─► connecting …
//
// run by a single goroutine, the log's writer. The source's reader is a second
// goroutine that lives for one Watch call; what it reads reaches ingest as whole
// transactions.
type ingest struct {
	// Static after construction.
	config  Config
	source  stream.Source
	log     *log.Writer
	account *memory.Account // of the log
	count   watchCounters
	wanted  func() bool     // whether the watch should run
	demand  <-chan struct{} // wanted may have changed
	peers   *peers
	logger  *slog.Logger

	// retire removes a watch that is not wanted from its template for good; it returns
	// false, and how long to wait, if it is too early. nil: the watch has no template, and
	// sleeps instead.
	retire func() (bool, time.Duration)

	*published
	recent *recentCommits

	// Owned by run.
	health Upstream
	connection
	revisions
	outage
	settling settling
	retired  bool // the watch has been removed
	timers
}

// timers are those that run waits for, besides the one of an outage.
type timers struct{ stale, progress, linger, unasked timer }

// outage is what run knows of the attempts that failed since the watch was last in sync.
type outage struct {
	lost      time.Time // when the watch was last in sync
	failures  int       // connections that failed in a row
	lastError cause

	retry    timer
	peerBack <-chan struct{} // while retry is set; nil: no other watch is waited for
	hurried  time.Time       // when another watch last shortened a wait
}

// published is what run writes and all goroutines read; in a view, what its follower writes.
type published struct {
	shown     atomic.Pointer[Upstream]     // nil before the first attempt
	received  atomic.Pointer[atomic.Int64] // by a connection that has not caught up; nil: there is none
	tooLarge  atomic.Pointer[memory.Error] // nil: the watch fits into its memory
	incidents atomic.Pointer[[]Incident]   // never modified, only replaced; newest first
}

// connection is what run knows of the Watch call under way. The next call begins with another one.
type connection struct {
	reader    *reader // nil: there is none
	connected time.Time
	committed bool          // something, by the reader
	caughtUp  bool          // the reader has caught up
	receiving bool          // the reader has received something
	resync    string        // why the reader loads what it loads; see Resync.Reason
	upstream  stream.Status // what the upstream reports of itself; State 0: nothing
}

// revisions is what run knows of the order of the upstream's revisions.
type revisions struct {
	aliases   map[string]string // names in the log of orders that the source broke
	startOver bool              // the next connection does not resume
	behind    time.Time         // since when the upstream is behind what was served; zero: it is not
	differs   bool              // the newest state had another digest than the upstream's when they were compared last
}

// reader is one Watch call under way.
type reader struct {
	sink   *stagingSink
	cancel context.CancelCauseFunc
	ended  chan error

	evicted *memory.Error // why ingest has ended it; nil: it has not
}

var errStopped = errors.New("the watch was stopped")

// start runs what keeps a watch in step, then calls ended.
func start(run, ended func()) {
	go func() {
		defer ended()
		run()
	}()
}

// run keeps the log in step until ctx ends or the watch is retired.
func (in *ingest) run(ctx context.Context) {
	in.beginJournal()
	in.wake(ctx)
	for ctx.Err() == nil && !in.retired {
		in.step(ctx)
	}
	in.disconnect()
	in.endJournal()
	in.recent.clear()
	in.account.Leave()
	for _, a := range []*timer{&in.retry, &in.stale, &in.progress, &in.linger, &in.unasked, &in.settling.timer} {
		a.stop()
	}
}

// step waits for the next event and handles it.
func (in *ingest) step(ctx context.Context) {
	var messages <-chan message
	var ended <-chan error
	if in.reader != nil {
		messages, ended = in.reader.sink.messages, in.reader.ended
	}
	select {
	case <-ctx.Done():
	case m := <-messages:
		in.reader.sink.replies <- in.handle(m)
	case err := <-ended:
		in.onEnded(err)
	case <-in.demand:
		in.wake(ctx)
	case <-in.account.Squeezing():
		in.onSqueezed()
	case <-in.peerBack:
		in.onPeerBack()
	case <-in.retry.C():
		in.retry.stop()
		in.connect(ctx)
	case <-in.stale.C():
		in.stale.stop()
		in.setLost()
	case <-in.progress.C():
		in.onProgress()
	case <-in.linger.C():
		in.linger.stop()
		in.sleep()
	case <-in.unasked.C():
		in.onUnasked()
	case <-in.settling.timer.C():
		in.onSettled()
	}
}

// wake connects a watch that should run, and starts the linger timer of one that should
// no longer run.
func (in *ingest) wake(ctx context.Context) {
	wanted := in.wanted()
	switch {
	case wanted && in.reader == nil && !in.retry.set():
		in.linger.stop()
		in.connect(ctx)
	case wanted:
		in.linger.stop()
	case (in.reader != nil || in.retry.set() || in.retire != nil) && !in.linger.set():
		in.linger.start(in.config.Linger)
	}
}

// sleep stops a watch without subscribers, and frees its memory.
func (in *ingest) sleep() {
	if in.wanted() {
		return
	}
	if in.retire != nil {
		in.leave()
		return
	}
	in.disconnect()
	in.retry.stop()
	in.peerBack = nil
	in.stale.stop()
	in.progress.stop()
	in.settling.timer.stop()
	in.recent.clear()
	in.failures, in.startOver, in.behind = 0, false, time.Time{} // the aliases stay: positions of the order before are still around
	in.tooLarge.Store(nil)
	in.health.Connected, in.health.Since, in.health.Attempts, in.health.NextAttemptAt = false, time.Time{}, 0, time.Time{}
	in.publishHealth()
	in.logger.Info("watch stopped: no subscribers")
	in.log.Discard(stream.Status{State: stream.Priming, Since: time.Now(), Reason: "stopped: no subscribers"})
}

// leave ends a watch without subscribers that a template made. If it was asked for in the
// meantime, it waits again.
func (in *ingest) leave() {
	var wait time.Duration
	if in.retired, wait = in.retire(); in.retired {
		in.logger.Info("watch removed: no subscribers")
	} else if !in.wanted() {
		in.linger.start(wait)
	}
}

func (in *ingest) connect(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &reader{sink: newStagingSink(ctx, cancel, in.account, in.log.Snapshot), cancel: cancel, ended: make(chan error, 1)}
	var resume stream.Resume
	if !in.startOver {
		resume = in.place()
	}
	in.connection, in.peerBack = connection{reader: r, connected: time.Now()}, nil
	in.received.Store(&r.sink.received)
	in.log.Overlap()
	in.beginResync(resume)
	in.progress.start(in.progressEvery(0))
	in.tried(in.connected)
	go func() { r.ended <- in.source.Watch(ctx, resume, r.sink) }()
}

// place is that from which the source may continue.
func (in *ingest) place() stream.Resume {
	state := in.log.Snapshot()
	if !state.Primed() || state.SourceEpoch() == "" {
		return stream.Resume{}
	}
	return stream.Resume{Epoch: state.SourceEpoch(), Revision: state.Revision(), DeletesBehind: state.Position().DeletesBehind}
}

// disconnect ends the Watch call under way and waits for it.
func (in *ingest) disconnect() {
	if in.reader == nil {
		return
	}
	in.reader.cancel(errStopped)
	<-in.reader.ended
	in.reader.sink.release()
	in.reader = nil
	in.received.Store(nil)
}

func (in *ingest) handle(m message) error {
	switch m.kind {
	case receiving:
		in.receiving = true
		if in.log.Status().State == stream.Stale && in.tooLarge.Load() == nil && in.upstream.State == 0 {
			in.setStatus(stream.Resyncing, resyncing)
		}
		return nil
	case freshness:
		return in.onFreshness(m)
	case horizonRaised:
		return in.log.RaiseHorizon(m.revision)
	case comparison:
		return in.onComparison(m.digest)
	default:
		return in.onTransaction(m)
	}
}

func (in *ingest) onTransaction(m message) error {
	before := in.log.Status()
	if m.reset && in.upstream.State == 0 && before.State != stream.InSync {
		// Published together with the data that makes it true.
		in.log.PrepareStatus(stream.Status{State: stream.InSync, Since: time.Now()})
	}
	result, err := in.apply(m)
	in.count.events.add("duplicate", result.Duplicates)
	if err != nil {
		in.log.PrepareStatus(before)
		return err
	}
	in.count.events.add("upsert", result.Upserts)
	in.count.events.add("delete", result.Deletes)
	if !result.Reset {
		in.count.changes.Add(uint64(result.Upserts + result.Deletes))
	}
	if len(m.changes) == 0 && !m.reset {
		in.count.events.add("bookmark", 1)
	}
	if m.reset {
		in.count.resyncs.add(in.resync, 1) // last, so that Stats with it have its events
	}
	in.onCommitted()
	in.remember(m)
	if m.reset {
		if before.State != in.log.Status().State {
			in.logger.Info("watch", "state", in.log.Status().State.String())
		}
		in.onCaughtUp()
	}
	return nil
}

// remember keeps when the revision of a transaction became visible, if somebody asks.
func (in *ingest) remember(m message) {
	if !in.recent.wanted.Load() {
		return
	}
	if m.reset {
		in.recent.clear()
	}
	in.recent.add(in.log.Snapshot().Revision(), time.Now())
	if !in.unasked.set() {
		in.unasked.start(unaskedFor)
	}
}

// onUnasked forgets when revisions became visible, if nobody asks any more.
func (in *ingest) onUnasked() {
	in.unasked.stop()
	if in.recent.rest() {
		in.unasked.start(unaskedFor)
	}
}

// onCommitted is called after each commit. The first of a connection shows that it
// works; it may not have caught up yet.
func (in *ingest) onCommitted() {
	if in.committed {
		return
	}
	in.committed, in.startOver = true, false
	in.behind = time.Time{}
	in.tooLarge.Store(nil)
	if in.upstream.State != 0 {
		in.publishFreshness()
	}
}

// onCaughtUp is called after a snapshot, and when a source that continues without
// one reports InSync: everything that the upstream had when the connection was made
// is committed.
func (in *ingest) onCaughtUp() {
	in.endResync(nil)
	in.caughtUp = true
	in.lastError = cause{}
	in.connectionReady()
	in.publishFreshness()
}

// connectionReady ends the wait for the connection to catch up.
func (in *ingest) connectionReady() {
	in.reached()
	in.received.Store(nil)
	in.stale.stop()
	in.progress.stop()
}

// apply writes a transaction or a snapshot to the log.
func (in *ingest) apply(m message) (log.CommitResult, error) {
	if !m.reset {
		in.log.Prepare(m.conflated, ageOf(m.made))
		return in.log.CommitCompleteTo(m.changes, m.revision, m.deletesTo)
	}
	in.log.Prepare(false, 0)
	snapshot, detail := resourcesOf(m.changes), ""
	epoch, primed := in.epochName(m.epoch), in.log.Snapshot().Primed()
	in.log.PrepareSourceEpoch(m.epoch)
	in.log.PrepareEarlier(earlierThan(m))
	if in.differs && contradicts(in.log.Snapshot(), epoch, snapshot, m.revision) {
		// The positions so far name states that the upstream never had.
		epoch, detail = in.rename(m.epoch), "what was served had another digest than what the upstream had"
		in.logger.Warn("taking a snapshot as a new epoch", "epoch", epoch, "because", detail)
	}
	result, err := in.log.ReplaceCompleteTo(epoch, snapshot, m.revision, m.deletesTo)
	if errors.Is(err, stream.ErrBehind) && in.behindTooLong(err) {
		// The upstream went back and stays there: this is a new order.
		epoch, detail = in.rename(m.epoch), in.upstreamText(err.Error())
		in.logger.Warn("taking an older snapshot as a new epoch", "epoch", epoch, "because", detail)
		result, err = in.log.ReplaceCompleteTo(epoch, snapshot, m.revision, m.deletesTo)
	}
	if err != nil {
		return result, err
	}
	in.differs = false
	if err := in.log.RaiseHorizon(m.horizon); err != nil {
		return result, err
	}
	reason := resyncReason(primed, result.Reset)
	in.resync = reason
	in.recordIncident(IncidentResync, reason, detail)
	return result, nil
}

// epochName is the name in the log of an epoch of the source. A source that went back
// gives its new order the old name; the log then gives it another one.
func (in *ingest) epochName(epoch string) string {
	return cmp.Or(in.aliases[epoch], in.canonical(epoch))
}

// rename returns a new name in the log for an epoch of the source, which does not name the new order. It keeps that name
// even if the snapshot that begins it is refused.
func (in *ingest) rename(epoch string) string {
	alias := newAlias(in.canonical(epoch))
	in.aliases[epoch] = alias
	if in.config.Journal != nil {
		in.config.Journal.SetAliases(in.aliases)
	}
	return alias
}

// newAlias makes up the name of a revision order that has none of its own.
func newAlias(epoch string) string {
	return fmt.Sprintf("%.12s~%06x", epoch, rand.IntN(1<<24))
}

// canonical is an epoch of the source as written in positions.
func (in *ingest) canonical(epoch string) string {
	if deletesUnnumbered(in.source) {
		return stream.UnnumberedName(epoch)
	}
	return epoch
}

func deletesUnnumbered(s stream.Source) bool {
	u, ok := s.(stream.DeletesUnnumbered)
	return ok && u.DeletesUnnumbered()
}

// resourcesOf returns the resources of a snapshot: those deleted while it was being
// read are not among them.
func resourcesOf(changes []log.Change) []stream.Resource {
	deleted := map[string]int{}
	for i := range changes {
		if changes[i].Deleted {
			deleted[changes[i].Key] = i
		}
	}
	resources := make([]stream.Resource, 0, len(changes))
	for i := range changes {
		at, gone := deleted[changes[i].Key]
		if !gone || i > at {
			resources = append(resources, changes[i].Resource)
		}
	}
	return resources
}

// earlierThan returns what the upstream knows of the time before a snapshot; nil: nothing.
func earlierThan(m message) *log.Earlier {
	if !m.earlier {
		return nil
	}
	e := &log.Earlier{After: m.after}
	for i := range m.changes {
		if m.changes[i].Deleted {
			e.Deletes = append(e.Deletes, m.changes[i].Resource)
		}
	}
	return e
}
