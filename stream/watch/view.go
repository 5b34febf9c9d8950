package watch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// ViewConfig says what a watch is a view of. The package views makes one.
type ViewConfig struct {
	// Open returns the other watch. It is called whenever the view begins to follow it: a
	// template may have removed the watch since the last time.
	Open func() (*Watch, error)
	// Feed keeps the view in step with that watch until ctx ends, or until it cannot go on. It
	// then returns why.
	Feed func(ctx context.Context, of *Watch, v *View) error
}

// View is a watch that is a view of another one, as its feed sees it.
type View struct {
	*Watch
	// State is the writing side. It belongs to the feed while Feed runs, to one goroutine at a
	// time; so do the methods of View.
	State *log.View

	// Static after construction.
	account *memory.Account
	ready   chan struct{}
	failed  chan *memory.Error
}

// Account counts what the view holds.
func (v *View) Account() *memory.Account { return v.account }

// Followed is called when the view has its first state since the feed began to make it, which
// it began to do at a time.
func (v *View) Followed(began time.Time, primed, reset bool) {
	reason := resyncReason(primed, reset)
	v.count.resyncs.add(reason, 1)
	v.recordIncident(IncidentResync, reason, "")
	if v.config.Resynced != nil {
		s := v.Snapshot()
		v.config.Resynced(Resync{Began: began, Ended: time.Now(), Reason: reason, Received: int64(s.Count()), Resources: s.Count(), Revision: s.Revision()})
	}
	select {
	case v.ready <- struct{}{}:
	default:
	}
}

// Received counts what the feed has added: a kind of event, and whether it is a change of a state
// that was served before.
func (v *View) Received(event string, live bool) {
	v.count.events.add(event, 1)
	if live {
		v.count.changes.Add(1)
	}
}

// Unmatchable counts a change on which the filter fails.
func (v *View) Unmatchable() { v.unmatchable.Add(1) }

// Fits is called when the view has grown. If it holds more than it may, Fits returns false, and
// the feed is ended soon: what is not published yet must not be.
func (v *View) Fits() bool {
	why := v.account.LogTooLarge(v.follows)
	if why == nil {
		return true
	}
	select {
	case v.failed <- why:
	default:
	}
	return false
}

// follows reports whether an account is that of a watch that the view is made from. A view that
// took memory from it would lose its own state too.
func (v *View) follows(a *memory.Account) bool {
	for w := v.viewOf.Load(); w != nil; w = w.viewOf.Load() {
		if w.account == a {
			return true
		}
	}
	return false
}

// Follow counts a subscriber of the watch that reads it by other means, until release is called.
func (w *Watch) Follow() (release func()) {
	w.counted(1, 1)
	return func() { w.counted(-1, -1) }
}

// follower keeps a view in step with its watch. It is to a view what ingest is to a watch that
// has a source.
type follower struct {
	// Static after construction.
	*published
	view   *View
	config *Config
	logger *slog.Logger
	retire func() (bool, time.Duration) // see ingest.retire

	// Owned by run.
	health   Upstream
	feed     *feed // nil: the view follows nothing
	failures int
	retired  bool

	retry, linger timer
}

// feed is one call of Feed under way.
type feed struct {
	cancel context.CancelCauseFunc
	ended  chan error
}

// newFollower makes the log, and returns what keeps it in step with the watch that this one is a
// view of.
func (w *Watch) newFollower(logger *slog.Logger, retire func() (bool, time.Duration)) (run func(context.Context)) {
	state := log.NewNamedView(w.logConfig())
	w.log = state.Log()
	f := &follower{
		published: w.published, config: w.config, logger: logger, retire: retire,
		view: &View{Watch: w, State: state, account: w.account, ready: make(chan struct{}, 1), failed: make(chan *memory.Error, 1)},
	}
	return f.run
}

func (f *follower) run(ctx context.Context) {
	f.wake(ctx)
	for ctx.Err() == nil && !f.retired {
		f.step(ctx)
	}
	f.stop(errStopped)
	f.retry.stop()
	f.linger.stop()
	f.view.account.Leave()
}

// step waits for the next event and handles it.
func (f *follower) step(ctx context.Context) {
	var ended <-chan error
	if f.feed != nil {
		ended = f.feed.ended
	}
	select {
	case <-ctx.Done():
	case err := <-ended:
		f.ended()
		f.lost(err)
	case why := <-f.view.failed:
		f.evict(why)
	case <-f.view.account.Squeezing():
		f.squeezed()
	case <-f.view.ready:
		f.reached()
	case <-f.view.demand:
		f.wake(ctx)
	case <-f.retry.C():
		f.retry.stop()
		f.follow(ctx)
	case <-f.linger.C():
		f.linger.stop()
		f.sleep()
	}
}

// wake follows the watch if the view should run, and starts the linger timer if it should not.
func (f *follower) wake(ctx context.Context) {
	wanted := f.view.wanted()
	switch {
	case wanted && f.feed == nil && !f.retry.set():
		f.linger.stop()
		f.follow(ctx)
	case wanted:
		f.linger.stop()
	case (f.feed != nil || f.retry.set() || f.retire != nil) && !f.linger.set():
		f.linger.start(f.config.Linger)
	}
}

// sleep stops a view without subscribers, and frees its memory.
func (f *follower) sleep() {
	switch {
	case f.view.wanted():
		return
	case f.retire != nil:
		var wait time.Duration
		if f.retired, wait = f.retire(); f.retired {
			f.logger.Info("watch removed: no subscribers")
		} else if !f.view.wanted() {
			f.linger.start(wait)
		}
		return
	}
	f.stop(errStopped)
	f.retry.stop()
	f.failures = 0
	f.tooLarge.Store(nil)
	f.health.Connected, f.health.Since, f.health.Attempts, f.health.NextAttemptAt = false, time.Time{}, 0, time.Time{}
	f.show()
	f.logger.Info("watch stopped: no subscribers")
	f.view.State.Discard(stream.Status{State: stream.Priming, Since: time.Now(), Reason: "stopped: no subscribers"})
}

// follow opens the watch, and begins to feed the view.
func (f *follower) follow(ctx context.Context) {
	if f.health.Since.IsZero() {
		f.health.Since = time.Now()
	}
	f.health.Attempts++
	f.health.NextAttemptAt = time.Time{}
	f.show()
	of, err := f.config.View.Open()
	if err == nil && of.Ended() {
		err = errors.New("the watch was removed")
	}
	if err != nil {
		f.lost(err)
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	f.feed = &feed{cancel: cancel, ended: make(chan error, 1)}
	f.view.viewOf.Store(of)
	ended := f.feed.ended
	start(func() { ended <- f.config.View.Feed(ctx, of, f.view) }, func() {})
}

// stop ends the feed and waits for it.
func (f *follower) stop(why error) {
	if f.feed == nil {
		return
	}
	f.feed.cancel(why)
	<-f.feed.ended
	f.ended()
	f.view.viewOf.Store(nil)
}

// ended is called once there is no feed any more.
func (f *follower) ended() {
	f.feed = nil
	select { // what it has said is of no more use
	case <-f.view.ready:
	default:
	}
	select {
	case <-f.view.failed:
	default:
	}
}

// evict ends the feed because the view does not fit into its memory. What was served, if
// anything, stays.
func (f *follower) evict(why *memory.Error) {
	if f.feed != nil {
		f.stop(why)
		f.lost(why)
	}
}

// squeezed gives up what is not served yet, or all that there is, if all watches together hold
// more than they may and no other watch holds more.
func (f *follower) squeezed() {
	if why := f.view.account.LogExceeds(); why != nil {
		f.evict(why)
	}
	why := f.view.account.LogExceeds()
	if why == nil {
		return
	}
	f.tooLarge.Store(why)
	f.view.State.Discard(stream.Status{State: stream.Priming, Since: time.Now(), Reason: reasons["memory"], Detail: why.Error()})
}

// reached is called once the view has a state.
func (f *follower) reached() {
	if f.feed == nil {
		return // it was ended meanwhile
	}
	f.failures = 0
	f.tooLarge.Store(nil)
	if !f.health.Connected {
		f.health.Since = time.Now()
	}
	f.health.Connected, f.health.Attempts = true, 0
	f.show()
}

// lost is called when the watch cannot be followed, or not any more.
func (f *follower) lost(err error) {
	f.view.viewOf.Store(nil)
	reason := reconnectReason(err)
	f.view.count.reconnects.add(reason, 1)
	f.failures++
	wait := f.config.Backoff.Wait(f.failures, rand.Float64())
	var of *memory.Error
	if errors.As(err, &of) {
		f.tooLarge.Store(of)
		wait *= memoryPatience
	}
	now, why := time.Now(), cause{reasons[reason], upstreamText(f.config, err.Error())}
	if f.health.Connected {
		f.health.Connected, f.health.Since = false, now
	}
	f.health.LastError, f.health.LastReason, f.health.LastErrorAt = why.detail, why.reason, now
	f.health.NextAttemptAt = now.Add(wait)
	f.show()
	f.recordIncident(IncidentReconnect, reason, why.detail)
	f.logger.Warn("upstream lost", "reason", reason, "error", why.detail, "retry_in", wait.Round(time.Millisecond).String())
	f.retry.start(wait)
	f.setStatus(why)
}

// setStatus says why the view is not in step: since when it has not been, whatever the reasons.
func (f *follower) setStatus(why cause) {
	state, since, old := stream.Priming, time.Now(), f.view.Status()
	if f.view.Snapshot().Primed() {
		state = stream.Stale
	}
	if old.State != stream.InSync {
		since = cmp.Or(old.Since, since)
	}
	f.view.State.SetStatus(stream.Status{State: state, Since: since, Reason: why.reason, Detail: why.detail})
}

// show publishes a copy of the health.
func (f *follower) show() {
	health := f.health
	f.shown.Store(&health)
}
