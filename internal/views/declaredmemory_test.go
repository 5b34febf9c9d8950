package views

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

const (
	mega     = 1 << 20
	ofTeamA  = `value.team == "a"`
	tooLarge = "too large: what is served needs at least"
	ofAll    = "of the memory ceiling of all watches together, 10.0 MiB: narrow or remove watches"
)

// declare adds a view of the watch that the configuration declares.
func (f *fixture) declare(c watch.Config, p view.Params) *watch.Watch {
	f.t.Helper()
	c.Name = "v"
	return f.declareOf(f.base, c, p)
}

// declareOf adds a view of a watch.
func (f *fixture) declareOf(of *watch.Watch, c watch.Config, p view.Params) *watch.Watch {
	f.t.Helper()
	all := NewDeclared()
	f.t.Cleanup(all.Close)
	c.View = all.View(of.Name(), func() (*watch.Watch, error) { return of, nil }, definition(f.t, p))
	v, err := f.registry.Add(c)
	if err != nil {
		f.t.Fatal(err)
	}
	synctest.Wait()
	return v
}

// shrink deletes the resources of a team that fill has made from a number on.
func (f *fixture) shrink(team string, from, to int) {
	var texts []string
	for i := from; i < to; i++ {
		texts = append(texts, fmt.Sprintf("%s/%d=", team, i))
	}
	f.commit(texts...)
}

func wantFull(t *testing.T, w *watch.Watch, state stream.State, count int, text string) {
	t.Helper()
	synctest.Wait()
	if s := w.Status(); s.State != state || w.Snapshot().Count() != count || !strings.Contains(s.Full(), text) {
		t.Errorf("%v %q with %d resources, want %v with %d, and %q", s.State, s.Full(), w.Snapshot().Count(), state, count, text)
	}
	if err := w.Full(); !errors.Is(err, memory.ErrExceeded) || !strings.Contains(err.Error(), text) {
		t.Errorf("full: %v", err)
	}
	if m := w.Memory(); m.Bytes() > 0 && m.Logs() > m.MostLogs() {
		t.Errorf("%d bytes are held, of %d", m.Logs(), m.MostLogs())
	}
}

func wantInSync(t *testing.T, w *watch.Watch, count int) {
	t.Helper()
	synctest.Wait()
	if s := w.Status(); s.State != stream.InSync || w.Snapshot().Count() != count || w.Full() != nil {
		t.Errorf("status %+v, %d resources, full: %v; want in sync with %d", s, w.Snapshot().Count(), w.Full(), count)
	}
}

// TestDeclaredGrowthThatDoesNotFit: the last state that fitted is shown as stale until the view
// fits again, however often it is made in vain.
func TestDeclaredGrowthThatDoesNotFit(t *testing.T) {
	for name, text := range map[string]string{"indexed": ofTeamA, "costly": `value.exists(k, k == "team" && value[k] == "a")`} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Config{})
			f.fill("a", 200)
			v := f.declare(watch.Config{MaxBytes: mega}, view.Params{Filter: text})
			wantInSync(t, v, 200)
			s := subscribe(t, v, nil)
			s.read()
			f.fill("a", 600)
			s.expect(t, "status stale")
			wantFull(t, v, stream.Stale, 200, tooLarge)
			time.Sleep(10 * time.Minute)
			wantFull(t, v, stream.Stale, 200, tooLarge)
			s.expect(t)
			if n, began := v.Stats().Reconnects["memory"], v.Snapshot().Status().Since; n < 2 || time.Since(began) < 10*time.Minute {
				t.Errorf("%s: the view was given up %d times, and is stale for %v", name, n, time.Since(began))
			}
			f.shrink("a", 100, 600)
			time.Sleep(10 * time.Minute)
			wantInSync(t, v, 100)
			if got := s.read(); len(got) != 103 || !strings.HasPrefix(got[0], "reset ") || got[102] != "status in_sync" && got[101] != "status in_sync" {
				t.Errorf("%s: %d events, %.200q", name, len(got), got)
			}
		})
	}
}

// TestDeclaredThatNeverFits: nothing is ever shown, and the view is primed once it fits.
func TestDeclaredThatNeverFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.fill("a", 600)
		v := f.declare(watch.Config{MaxBytes: mega}, view.Params{Filter: ofTeamA})
		s := subscribe(t, v, nil)
		for range 3 {
			wantFull(t, v, stream.Priming, 0, tooLarge)
			if v.Snapshot().Primed() || v.Memory().Logs() > 10<<10 {
				t.Errorf("primed: %t, %d bytes are held", v.Snapshot().Primed(), v.Memory().Logs())
			}
			time.Sleep(time.Minute)
		}
		for reason, n := range v.Stats().Resyncs {
			if n != 0 {
				t.Errorf("it counts as loaded %d times: %s", n, reason)
			}
		}
		for _, text := range s.read() {
			if text != "status priming" {
				t.Errorf("the subscriber read %q", text)
			}
		}
		f.shrink("a", 100, 600)
		time.Sleep(10 * time.Minute)
		wantInSync(t, v, 100)
	})
}

// TestDeclaredSharesMemory: a view takes no more than what is left, and nothing that its watch
// has, without which there is no view.
func TestDeclaredSharesMemory(t *testing.T) {
	for name, c := range map[string]struct{ a, b int }{"large": {1690, 700}, "small": {1400, 1500}} {
		synctest.Test(t, func(t *testing.T) {
			shared := memory.NewCeiling(10 * mega)
			f := newFixtureOf(t, streamtest.NewUpstream("e", streamtest.OwnRevision), Config{}, watch.Config{Memory: shared})
			f.fill("a", c.a)
			f.fill("b", c.b)
			v := f.declare(watch.Config{Memory: shared}, view.Params{Filter: ofTeamA})
			for range 10 {
				wantFull(t, v, stream.Priming, 0, ofAll)
				wantInSync(t, f.base, c.a+c.b)
				time.Sleep(time.Minute)
			}
			if n := f.base.Stats().Reconnects["memory"]; n != 0 {
				t.Errorf("%s: the watch has lost its state %d times", name, n)
			}
			f.shrink("b", 0, c.b)
			time.Sleep(10 * time.Minute)
			wantInSync(t, v, c.a)
			f.registry.Remove("v")
			f.registry.Remove("w")
			if shared.Logs() != 0 || shared.Staged() != 0 {
				t.Errorf("%s: without watches %d and %d bytes are counted", name, shared.Logs(), shared.Staged())
			}
		})
	}
}

// TestDeclaredGivesUpMemory: a view that holds the most gives up what others need, also while it
// is not fed.
func TestDeclaredGivesUpMemory(t *testing.T) {
	for name, fed := range map[string]bool{"fed": true, "not fed": false} {
		synctest.Test(t, func(t *testing.T) {
			shared := memory.NewCeiling(10 * mega)
			f := newFixture(t, Config{})
			f.fill("a", 2600)
			v := f.declare(watch.Config{Memory: shared}, view.Params{Filter: ofTeamA})
			wantInSync(t, v, 2600)
			if !fed {
				f.registry.Remove("w")
				synctest.Wait()
			}
			u := streamtest.NewUpstream("e", streamtest.OwnRevision)
			g := &fixture{t: t, upstream: u, endpoint: u.Replica(), registry: f.registry}
			other, err := f.registry.Add(watch.Config{Name: "other", Source: g.endpoint, Memory: shared})
			if err != nil {
				t.Fatal(err)
			}
			g.fill("b", 1600)
			wantInSync(t, other, 1600)
			wantFull(t, v, stream.Priming, 0, ofAll)
			if v.Snapshot().Primed() || v.Memory().Logs() > 10<<10 {
				t.Errorf("%s: primed: %t, %d bytes are held", name, v.Snapshot().Primed(), v.Memory().Logs())
			}
			time.Sleep(10 * time.Minute)
			wantInSync(t, other, 1600)
			f.registry.Remove("other")
			time.Sleep(10 * time.Minute)
			if fed {
				wantInSync(t, v, 2600)
			}
		})
	}
}

// TestDeclaredBeyondItsShare: a view that takes more than its share is refused what another watch
// has, although that one holds more.
func TestDeclaredBeyondItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.NewCeiling(10 * mega)
		f := newFixture(t, Config{})
		f.fill("a", 2300)
		g := newFixtureOf(t, streamtest.NewUpstream("e", streamtest.OwnRevision), Config{}, watch.Config{Memory: shared})
		g.fill("b", 1880)
		v := f.declare(watch.Config{Memory: shared}, view.Params{Filter: ofTeamA})
		for range 10 {
			wantFull(t, v, stream.Priming, 0, ofAll)
			wantInSync(t, g.base, 1880)
			time.Sleep(time.Minute)
		}
		if n := g.base.Stats().Reconnects["memory"]; n != 0 {
			t.Errorf("the other watch has lost its state %d times", n)
		}
	})
}

// drive adds a declared view that the caller feeds until it calls done.
func drive(f *fixture, c watch.Config) (v *watch.Watch, e *entry, done func()) {
	f.t.Helper()
	all := NewDeclared()
	f.t.Cleanup(all.Close)
	p := &parent{of: f.base, ended: make(chan struct{}), views: map[string]*entry{}}
	fed, over := make(chan *entry, 1), make(chan struct{})
	c.Name, c.View = "v", &watch.ViewConfig{
		Open: func() (*watch.Watch, error) { return f.base, nil },
		Feed: func(ctx context.Context, _ *watch.Watch, to *watch.View) error {
			e, _ := newDeclared(all, p, definition(f.t, view.Params{Filter: ofTeamA}), to)
			fed <- e
			<-ctx.Done()
			<-over
			e.end()
			return context.Cause(ctx)
		},
	}
	v, err := f.registry.Add(c)
	if err != nil {
		f.t.Fatal(err)
	}
	return v, <-fed, func() { close(over) }
}

// endless is a turn that does not end while time stands still.
func endless(p *parent) *turn { return &turn{of: p, ends: time.Now().Add(time.Hour)} }

// TestDeclaredThatStops: what was not published when the feed of a view ends is not held.
func TestDeclaredThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.fill("a", 500)
		v, e, done := drive(f, watch.Config{})
		defer done()
		e.feed(endless(e.parent))
		published := v.Memory().Logs()
		f.fill("a", 1000)
		s := f.base.Snapshot()
		e.begin(s) // as it is made again
		for c := range s.Entries(0) {
			e.found(s, c)
		}
		e.state.Count()
		held := v.Memory().Logs()
		e.state.Abandon()
		if n := v.Memory().Logs(); held <= published || n != published {
			t.Errorf("%d bytes were published, and %d held; %d are held in the end", published, held, n)
		}
	})
}

// TestDeclaredOvershoot: a view is checked while it is fed, whatever there is to feed it with.
func TestDeclaredOvershoot(t *testing.T) {
	for name, feed := range map[string]func(f *fixture, e *entry){
		"made": func(f *fixture, e *entry) {
			f.fill("a", 3000)
			e.feed(endless(e.parent))
		},
		"made with others": func(f *fixture, e *entry) {
			f.fill("a", 3000)
			newBatch([]*entry{e}).work(endless(e.parent))
		},
		"live": func(f *fixture, e *entry) {
			b := newBatch([]*entry{e})
			b.work(endless(e.parent))
			f.fill("a", 3000)
			b.feed(f.base.Snapshot())
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Config{})
			f.fill("a", 10)
			v, e, done := drive(f, watch.Config{MaxBytes: mega})
			feed(f, e)
			e.state.Count()
			own := e.account.Own()
			if most := own.MostLogs() + 3*countedEvery; own.Logs() > most || own.Logs() < own.MostLogs() {
				t.Errorf("%s: %d bytes are held, want %d at most", name, own.Logs(), most)
			}
			if n := v.Snapshot().Count(); n > 10 {
				t.Errorf("%s: %d resources are shown", name, n)
			}
			done()
			synctest.Wait()
			if v.Full() == nil {
				t.Errorf("%s: the follower does not know", name)
			}
		})
	}
}
