package watch

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// away is a Source whose upstream cannot be reached before a time.
type away struct {
	until time.Time

	// Owned by ingest's reader, read when it is idle.
	attempts int
	followed time.Time
}

func (a *away) Watch(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	a.attempts++
	if time.Now().Before(a.until) {
		return errBroken
	}
	a.followed = time.Now()
	return snapshotThen("e", 1, nil, stayFor(time.Hour, errBroken))(ctx, stream.Resume{}, sink)
}

// The watches of a source come back together, and those of another one when they find out.
func TestWatchesOfASourceComeBackTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(5 * time.Minute)
		r := NewRegistry()
		var all []*away
		for i := range 20 {
			all = append(all, &away{until: back})
			if _, err := r.Add(Config{Name: fmt.Sprint("w", i), SourceName: "s", Source: all[i]}); err != nil {
				t.Fatal(err)
			}
		}
		other := &away{until: back.Add(time.Hour)}
		w, err := r.Add(Config{Name: "other", SourceName: "t", Source: other})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(back) - time.Nanosecond)
		synctest.Wait()
		next := w.Upstream().NextAttemptAt
		time.Sleep(min(time.Minute, time.Until(next)-time.Nanosecond))
		synctest.Wait()
		if now := w.Upstream().NextAttemptAt; !now.Equal(next) {
			t.Errorf("the watch of another source is tried %v earlier", next.Sub(now))
		}
		time.Sleep(time.Minute)
		r.Close()
		first, last := all[0].followed, all[0].followed
		for _, a := range all {
			if a.followed.Before(first) {
				first = a.followed
			}
			if a.followed.After(last) {
				last = a.followed
			}
		}
		if most := (Backoff{}).withDefaults().Min; first.IsZero() || last.Sub(first) > most {
			t.Errorf("the last watch came %v after the first one, want at most %v", last.Sub(first), most)
		}
	})
}

// What is wrong with one watch alone is not tried more often than every ten seconds, whatever the
// others do.
func TestPeersThatComeAndGoHurryAWatchNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry()
		for i := range 30 {
			if _, err := r.Add(Config{Name: fmt.Sprint("w", i), SourceName: "s", Source: &flaky{healthy: time.Second}}); err != nil {
				t.Fatal(err)
			}
		}
		denied := &away{until: time.Now().Add(24 * time.Hour)}
		if _, err := r.Add(Config{Name: "denied", SourceName: "s", Source: denied}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		r.Close()
		// Every ten seconds for a peer, and after each of them at most one of its own back-off.
		if denied.attempts > 260 {
			t.Errorf("%d attempts in 20 minutes, want at most 260", denied.attempts)
		}
	})
}
