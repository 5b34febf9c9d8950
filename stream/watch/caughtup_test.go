package watch

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// backlog continues from a place with one transaction after the other, each of which
// takes a millisecond on the wire, and reports at the end that it has caught up.
func backlog(from, to uint64, atEnd ...stream.State) stream.SourceFunc {
	return func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		for r := from; r <= to; r++ {
			time.Sleep(time.Millisecond)
			if err := sink.Upsert(upsert("a", r).Resource); err != nil {
				return err
			}
			if err := sink.Commit(r); err != nil {
				return err
			}
		}
		for _, state := range atEnd {
			if err := sink.Status(state, "so it says"); err != nil {
				return err
			}
		}
		return stay(ctx, stream.Resume{}, sink)
	}
}

// TestInSyncOnceCaughtUp: a resume with a backlog is not in sync before the end of
// the backlog, however much of it was committed.
func TestInSyncOnceCaughtUp(t *testing.T) {
	bubble(t, Config{Backoff: Backoff{Min: 5 * time.Second, Max: 5 * time.Second}}, []stream.SourceFunc{
		snapshotThen("e", 10, []log.Change{upsert("a", 1)}, stayFor(time.Minute, errBroken)),
		backlog(11, 2010, stream.InSync),
	}, func(t *testing.T, w *Watch, s *script) {
		r := follow(w)
		defer r.s.Close()
		r.next()
		time.Sleep(time.Minute + 2*time.Second)
		synctest.Wait()
		if state := w.Status().State; state != stream.Stale {
			t.Fatalf("the upstream is lost, and the watch is %v", state)
		}
		for connected := w.Upstream().Connected; w.Status().State != stream.InSync; connected = w.Upstream().Connected {
			if connected {
				t.Fatal("connected, which means caught up, before it is")
			}
			<-w.Changed()
			synctest.Wait() // the two are not read at once
		}
		if at := w.Snapshot().Revision(); at != 2010 {
			t.Errorf("in_sync was sent at %d, %v before the data was there, want at 2010", at, time.Duration(2010-at)*time.Millisecond)
		}
		if took := time.Since(s.times[1]); took < 2*time.Second {
			t.Errorf("in sync %v after the connection was made, want 2 s", took)
		}
		if !w.Upstream().Connected {
			t.Error("caught up, and not connected")
		}
	})
}

// TestCatchingUpWithinTheGrace: catching up that takes longer than the grace period
// is reported.
func TestCatchingUpWithinTheGrace(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 10, []log.Change{upsert("a", 1)}, stayFor(time.Minute, errBroken)),
		backlog(11, 2010, stream.InSync),
	}, func(t *testing.T, w *Watch, _ *script) {
		r := follow(w)
		defer r.s.Close()
		r.next()
		time.Sleep(time.Minute + 1500*time.Millisecond)
		synctest.Wait()
		if s := w.Status(); s.State != stream.Resyncing || time.Since(s.Since) < time.Second {
			t.Errorf("status %+v, want resyncing since the upstream was lost", s)
		}
		time.Sleep(5 * time.Second)
		if s := w.Status(); s.State != stream.InSync {
			t.Errorf("status %+v at the end, want in_sync", s)
		}
	})
}

// TestNeverCaughtUp: a source that never reports that it has caught up is reported,
// like a snapshot that does not end.
func TestNeverCaughtUp(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 10, []log.Change{upsert("a", 1)}, stayFor(time.Minute, errBroken)),
		backlog(11, 20),
	}, func(t *testing.T, w *Watch, _ *script) {
		time.Sleep(time.Minute + 30*time.Second)
		synctest.Wait()
		if got := w.Status(); got.State != stream.Resyncing || got.Reason != "catching up, at revision 20 so far" {
			t.Errorf("status %+v", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.Status(); !strings.HasPrefix(got.Reason, "not caught up after 1m0s, at revision 20 so far") {
			t.Errorf("status %+v", got)
		}
	})
}

// TestCaughtUpWithAStaleUpstream: the watch reports the upstream's own status, and
// the connection is up.
func TestCaughtUpWithAStaleUpstream(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 10, []log.Change{upsert("a", 1)}, stayFor(time.Minute, errBroken)),
		backlog(11, 20, stream.Stale),
	}, func(t *testing.T, w *Watch, _ *script) {
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := w.Status(); got.State != stream.Stale || got.Detail != "the upstream says: so it says" || !w.Upstream().Connected {
			t.Errorf("status %+v, upstream %+v", got, w.Upstream())
		}
	})
}

// TestInSyncIsNotSaidOfASnapshotUnderWay, nor before the first commit.
func TestInSyncIsNotSaidOfASnapshotUnderWay(t *testing.T) {
	say := func(sink stream.Sink) error { return sink.Status(stream.InSync, "") }
	again := func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
		if err := say(sink); err != nil {
			return err
		}
		if err := sink.Reset("e"); err != nil {
			return err
		}
		if err := say(sink); err != nil {
			return err
		}
		time.Sleep(time.Minute)
		return snapshotThen("e", 30, []log.Change{upsert("b", 30)}, stay)(ctx, resume, sink)
	}
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 10, []log.Change{upsert("a", 1)}, stayFor(time.Minute, errBroken)),
		again,
	}, func(t *testing.T, w *Watch, _ *script) {
		r := follow(w)
		defer r.s.Close()
		r.next()
		time.Sleep(time.Minute + 30*time.Second)
		if got := r.next(); slices.Contains(got, "status in_sync") || w.Status().State != stream.Resyncing {
			t.Errorf("before the snapshot was complete: %q, %v", got, w.Status())
		}
		time.Sleep(time.Minute)
		if got := r.next(); got[len(got)-1] != "status in_sync" {
			t.Errorf("after it: %q", got)
		}
	})
}
