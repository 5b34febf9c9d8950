package watch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

func TestUpstreamHealth(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		fail(errBroken),
		snapshotThen("e", 1, nil, stayFor(2*time.Minute, errBroken)),
		fail(errBroken),
		fail(errBroken),
		snapshotThen("e", 1, nil, stay),
	}, func(t *testing.T, w *Watch, _ *script) {
		begin := time.Now()
		synctest.Wait()
		u := w.Upstream()
		if u != (Upstream{Since: begin, Attempts: 1, LastError: errBroken.Error(), LastReason: reasons["error"], LastErrorAt: begin, NextAttemptAt: u.NextAttemptAt}) {
			t.Errorf("after an attempt that failed: %+v", u)
		}
		time.Sleep(time.Until(u.NextAttemptAt))
		synctest.Wait()
		if now := w.Upstream(); !u.NextAttemptAt.After(begin) || !now.Connected || !now.Since.Equal(u.NextAttemptAt) {
			t.Errorf("the next attempt was announced for %v: %+v", u.NextAttemptAt, now)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		up := w.Upstream()
		if up != (Upstream{Connected: true, Since: up.Since, LastError: errBroken.Error(), LastReason: reasons["error"], LastErrorAt: begin}) || !up.Since.After(begin) {
			t.Errorf("connected: %+v", up)
		}
		lost := up.Since.Add(2 * time.Minute)
		time.Sleep(time.Until(lost))
		synctest.Wait()
		if u := w.Upstream(); u != (Upstream{Since: lost, LastError: errBroken.Error(), LastReason: reasons["error"], LastErrorAt: lost, NextAttemptAt: u.NextAttemptAt}) || !u.NextAttemptAt.After(lost) {
			t.Errorf("lost at %v: %+v", lost, u)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if u := w.Upstream(); !u.Connected || u.Attempts != 0 || !u.Since.After(u.LastErrorAt) || !u.LastErrorAt.After(lost) {
			t.Errorf("back after two attempts: %+v", u)
		}
	})
}

// A watch that nobody wants has no upstream to be lost.
func TestUpstreamHealthOfAWatchThatIsNotWanted(t *testing.T) {
	bubble(t, Config{OnDemand: true, Linger: time.Second}, []stream.SourceFunc{
		snapshotThen("e", 1, nil, stay),
	}, func(t *testing.T, w *Watch, _ *script) {
		if u := w.Upstream(); u != (Upstream{}) {
			t.Errorf("%+v before it was ever started", u)
		}
		r := follow(w)
		r.next()
		if u := w.Upstream(); !u.Connected {
			t.Errorf("%+v with a subscriber", u)
		}
		r.s.Close()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if u := w.Upstream(); u.Connected || u.Attempts != 0 || !u.NextAttemptAt.IsZero() {
			t.Errorf("%+v after the last subscriber left", u)
		}
	})
}

// A watch that nobody wants any more while its upstream is lost has no next attempt.
func TestNoNextAttemptOfAWatchThatIsNotWanted(t *testing.T) {
	bubble(t, Config{OnDemand: true, Linger: time.Second, Backoff: Backoff{Min: time.Hour, Max: time.Hour}}, []stream.SourceFunc{
		fail(errBroken),
	}, func(t *testing.T, w *Watch, _ *script) {
		r := follow(w)
		synctest.Wait()
		if u := w.Upstream(); time.Until(u.NextAttemptAt) < time.Minute {
			t.Errorf("%+v with a subscriber", u)
		}
		r.s.Close()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if u := w.Upstream(); !u.NextAttemptAt.IsZero() {
			t.Errorf("%+v after the last subscriber left", u)
		}
	})
}
