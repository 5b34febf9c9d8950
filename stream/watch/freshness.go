package watch

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// publishFreshness is called after a commit, or when the upstream reports its own
// status: a watch cannot be fresher than its upstream. An upstream that changes its
// mind all the time floods neither logs nor subscribers; see settling.
func (in *ingest) publishFreshness() {
	state, why := in.freshness()
	if in.upstream.State != 0 && in.committed {
		in.connectionReady() // the upstream itself reports what is missing
	}
	if state == 0 || !in.changes(state, why) || in.settling.postpones(time.Now()) {
		return
	}
	in.setLostAt(time.Now())
	in.setStatus(state, why)
}

// freshness is what the connection and its upstream say; state 0: nothing so far.
func (in *ingest) freshness() (state stream.State, why cause) {
	up := in.upstream
	switch primed := in.log.Snapshot().Primed(); {
	case !primed && up.State != 0:
		return stream.Priming, upstreamCause(up)
	case !primed:
	case up.State != 0:
		return max(up.State, stream.Resyncing), upstreamCause(up)
	case in.caughtUp:
		return stream.InSync, cause{}
	}
	return 0, cause{}
}

// onSettled publishes what the upstream last said.
func (in *ingest) onSettled() {
	in.settling.timer.stop()
	in.publishFreshness()
}

// onFreshness passes on the upstream's own status. A snapshot under way becomes in
// sync only by its commit, and nothing does before the connection's first commit.
func (in *ingest) onFreshness(m message) error {
	switch m.state {
	case stream.InSync:
		in.upstream = stream.Status{}
		if in.committed && !m.reset {
			in.onCaughtUp()
			return nil
		}
	case stream.Priming, stream.Resyncing, stream.Stale:
		in.upstream = stream.Status{State: m.state, Reason: in.upstreamText(m.reason)}
	default:
		return fmt.Errorf("%w: a watch cannot be %v", stream.ErrInvalid, m.state)
	}
	in.publishFreshness()
	return nil
}

// resyncing is the cause of Resyncing.
var resyncing = publicCause("the upstream is back, loading what changed")

// setLost reports that the watch is not fresh: the grace period is over.
func (in *ingest) setLost() {
	if in.receiving && in.reader != nil && in.tooLarge.Load() == nil {
		in.setStatus(stream.Resyncing, resyncing)
		return
	}
	in.setStatus(stream.Stale, in.lastError)
}

// setLostAt remembers when the watch was last in sync.
func (in *ingest) setLostAt(now time.Time) {
	if in.log.Status().State == stream.InSync && !in.stale.set() {
		in.lost = now
	}
}

// onProgress reports how far a long snapshot is, and when it takes too long.
func (in *ingest) onProgress() {
	took := time.Since(in.connected).Round(time.Second)
	in.progress.start(in.progressEvery(took))
	if in.tooLarge.Load() != nil {
		return // the watch waits for memory, whatever its progress
	}
	why := publicCause(in.progressText(took))
	if in.upstream.State != 0 {
		says := upstreamCause(in.upstream)
		why = cause{why.reason + "; " + says.reason, why.reason + "; " + says.detail}
	}
	switch in.log.Status().State {
	case stream.InSync: // the grace is not over
	case stream.Stale:
		in.setStatus(stream.Stale, why)
	default:
		in.setStatus(in.log.Status().State, why)
	}
}

// progressText describes the progress of a connection that has not caught up.
func (in *ingest) progressText(took time.Duration) string {
	received, revision := in.reader.sink.received.Load(), in.log.Snapshot().Revision()
	late, of, expected := took >= in.config.SnapshotTimeout, "", estimated(in.source)
	if expected > 0 {
		of = fmt.Sprintf(", of about %d", expected)
	}
	switch {
	case in.committed && late:
		in.logger.Warn("upstream does not say that it has caught up", "after", took, "revision", revision)
		return fmt.Sprintf("not caught up after %v, at revision %d so far", took, revision)
	case in.committed:
		return fmt.Sprintf("catching up, at revision %d so far", revision)
	case late:
		in.logger.Warn("upstream sends no end_of_snapshot", "after", took, "resources", received, "expected", expected)
		return fmt.Sprintf("no end_of_snapshot after %v, %s so far%s", took, resources(received), of)
	}
	if received > 0 {
		in.logger.Info("loading", "after", took, "resources", received, "expected", expected)
	}
	return fmt.Sprintf("loading, %s so far%s", resources(received), of)
}

// estimated returns how many resources the snapshot under way has, about; 0: that is not known.
func estimated(s stream.Source) int64 {
	if e, knows := s.(stream.Estimating); knows {
		return e.EstimatedResources()
	}
	return 0
}

func resources(n int64) string {
	if n == 1 {
		return "1 resource"
	}
	return fmt.Sprintf("%d resources", n)
}

// progressEvery is the time until the next report on a snapshot that has taken so
// long. It grows, since every subscriber gets the report.
func (in *ingest) progressEvery(took time.Duration) time.Duration {
	every := min(max(5*time.Second, took), 5*time.Minute)
	if left := in.config.SnapshotTimeout - took; left > 0 {
		every = min(every, left)
	}
	return every
}

// setStatus publishes a change of freshness. A watch that is not in sync keeps the
// time at which that began, however often it was nearly in sync again.
func (in *ingest) setStatus(state stream.State, why cause) {
	if !in.changes(state, why) {
		return
	}
	old, since := in.log.Status(), time.Now()
	switch {
	case state == old.State:
		since = old.Since
	case (state == stream.Stale || state == stream.Resyncing) && (old.State == stream.Stale || old.State == stream.Resyncing):
		since = old.Since
	case (state == stream.Stale || state == stream.Resyncing) && old.State == stream.InSync:
		since = in.lost
	}
	now := stream.Status{State: state, Since: since, Reason: why.reason, Detail: why.detail}
	if state != old.State {
		level := slog.LevelInfo
		if state == stream.Stale {
			level = slog.LevelWarn
		}
		in.logger.Log(context.Background(), level, "watch", "state", state.String(), "reason", now.Full())
	}
	in.log.SetStatus(now)
}

// changes reports whether a status differs from the published one.
func (in *ingest) changes(state stream.State, why cause) bool {
	old := in.log.Status()
	return old.State != state || old.Reason != why.reason || old.Detail != why.detail
}
