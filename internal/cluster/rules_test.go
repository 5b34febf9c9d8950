package cluster

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// follow makes the rules of the cluster known, and returns a function that tells of a change.
func (w *world) follow() (changed func(namespace string)) {
	changes := make(chan string)
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.server.rules = func(ctx context.Context, changed func(string)) error {
		changed("")
		for {
			select {
			case namespace := <-changes:
				changed(namespace)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return func(namespace string) { changes <- namespace }
}

// TestRulesChange: a change of the rules takes effect at once, and costs questions about its namespace only.
func TestRulesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{Refresh: 10 * time.Minute}, "a", "b", "c", "d")
		defer w.stop()
		changed := w.follow()
		w.let("ann", true, "a", "b")
		w.let("root", true, everywhere)
		w.await("ann")
		w.await("root")
		w.during(20*time.Second, func(time.Duration) {}) // the rules were read for the first time
		w.asked()

		w.let("ann", false, "a")
		changed("a")
		w.during(5*time.Second, func(after time.Duration) {
			if got := w.sees("ann"); after > 2*time.Second && got != "b" {
				t.Fatalf("%v after the change in a, ann sees %q", after, got)
			}
		})
		if n := w.asked(); n != 1 {
			t.Errorf("%d questions about one namespace of one user, want 1", n)
		}
		w.let("root", false, everywhere)
		w.let("root", true, "d")
		changed("")
		w.during(5*time.Second, func(after time.Duration) {
			if got := w.sees("root"); after > 3*time.Second && got != "d" {
				t.Fatalf("%v after the change everywhere, root sees %q", after, got)
			}
		})
	})
}

// TestRulesChangeWhileTheyAreAskedAbout: an answer to a question that was asked before the change does not count as
// one after it.
func TestRulesChangeWhileTheyAreAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{Refresh: 10 * time.Minute}, "a")
		defer w.stop()
		changed := w.follow()
		w.let("ann", true, "a")
		w.await("ann")
		w.during(20*time.Second, func(time.Duration) {})
		w.set(func() { w.takes = 5 * time.Second })
		changed("a")
		time.Sleep(2 * time.Second) // it is being asked now, twice, for list and watch
		changed("a")
		time.Sleep(2 * time.Second)
		w.asked()
		time.Sleep(20 * time.Second)
		if n := w.asked(); n != 3 { // the watch, and then both again
			t.Errorf("%d questions, want 3", n)
		}
	})
}

// TestStormOfRules: changes without end cost no more questions than there may be, and new users get their answers.
func TestStormOfRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{ReviewsPerSecond: 20}, "a", "b", "c", "d", "e", "f", "g", "h")
		defer w.stop()
		changed := w.follow()
		for _, name := range []string{"ann", "bob", "eve", "joe"} {
			w.let(name, true, "a", "b", "c")
			w.await(name)
		}
		storm, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; storm.Err() == nil; i++ {
				changed([]string{"", "a", "x" + strings.Repeat("y", i%2000)}[i%3])
				time.Sleep(5 * time.Millisecond)
			}
		}()
		time.Sleep(10 * time.Second)
		w.asked()
		const lasts = 30
		began := time.Now()
		w.let("new", true, "h")
		if got := w.await("new"); got != "h" {
			t.Errorf("a new user sees %q", got)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("a new user waits for %v", took)
		}
		time.Sleep(lasts*time.Second - time.Since(began))
		if n := w.asked(); n > 20*lasts+20 {
			t.Errorf("%d questions in %d s, want at most 20 a second", n, lasts)
		}
		if got := w.sees("ann"); got != "a b c" {
			t.Errorf("ann sees %q", got)
		}
		end()
		<-done
	})
}

// TestRulesThatCannotBeFollowed: one message says so, and rights are looked at from time to time.
func TestRulesThatCannotBeFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := newWorld(t, RightsConfig{}, "a", "b")
		w.stop()
		w.rights.config.Log = slog.New(slog.NewTextHandler(&out, nil))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.rights.Run(ctx, func() {}) }()
		w.let("ann", true, "a", "b")
		w.await("ann")
		w.during(10*time.Minute, func(time.Duration) { w.sees("ann") })
		w.let("ann", false, "a")
		w.during(40*time.Second, func(time.Duration) { w.sees("ann") })
		if got := w.sees("ann"); got != "b" {
			t.Errorf("ann sees %q", got)
		}
		w.follow()
		w.during(5*time.Minute, func(time.Duration) { w.sees("ann") })
		w.server.mu.Lock()
		w.server.rules = nil
		w.server.mu.Unlock()
		cancel()
		<-done
		if n := strings.Count(out.String(), "cannot be followed"); n != 1 || !strings.Contains(out.String(), "the rules are hidden") {
			t.Errorf("%d messages, want 1:\n%s", n, out.String())
		}
	})
}

// TestRulesAreFollowedAgain soon after they could be followed for long, and rarely where they never could.
func TestRulesAreFollowedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, RightsConfig{}, "a")
		defer w.stop()
		var calls atomic.Int64
		w.server.mu.Lock()
		w.server.rules = func(ctx context.Context, changed func(string)) error {
			if calls.Add(1) > 3 {
				changed("")
				time.Sleep(5 * time.Minute)
			}
			return errors.New("the server has ended the watch")
		}
		w.server.mu.Unlock()
		time.Sleep(time.Hour)
		if n := calls.Load(); n != 0 {
			t.Errorf("%d calls before the first question", n)
		}
		w.await("ann")
		w.during(170*time.Second, func(time.Duration) { w.sees("ann") })
		if n := calls.Load(); n != 3 {
			t.Errorf("%d calls in 170 s of failures, want 3", n)
		}
		w.during(25*time.Minute, func(time.Duration) { w.sees("ann") })
		if n := calls.Load(); n < 7 || n > 9 {
			t.Errorf("%d calls after 25 min with five of each that lasts, want 8", n)
		}
	})
}
