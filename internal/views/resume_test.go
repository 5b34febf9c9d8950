package views

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// moved returns the place of a reader of a view at one replica, and the next replica of
// the same upstream.
func moved(t *testing.T, f *fixture, d *view.Definition, c watch.Config) (*stream.Position, *fixture) {
	t.Helper()
	s := subscribe(t, f.open(d, "c"), nil)
	s.read()
	return s.at(t), newFixtureOf(t, f.upstream, Config{}, c)
}

// both makes a transaction that two replicas see.
func both(f, g *fixture, texts ...string) {
	f.write(texts...)
	f.endpoint.Catch(-1)
	g.endpoint.Catch(-1)
	synctest.Wait()
}

// resumed returns what a reader gets that continues in a view of a replica.
func resumed(t *testing.T, f *fixture, d *view.Definition, from *stream.Position, ask bool) []string {
	t.Helper()
	r := Request{Client: "c"}
	if ask {
		r.Resume = from
	}
	w, err := f.views.Open(f.base, d, r)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	s := subscribe(t, w, from)
	var out []string
	for _, text := range append(s.read(), s.read()...) { // the first may only ask for more history
		if text != "status resyncing" && text != "status in_sync" {
			out = append(out, text)
		}
	}
	return out
}

func expectTexts(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("read %q, want %q", got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("read %q, want %q", got, want)
			return
		}
	}
}

// TestResumeElsewhere: a replica that builds the view only now, or has built it without
// older deletes, knows what has left the view since a position.
func TestResumeElsewhere(t *testing.T) {
	for _, text := range []string{`value.n == 1`, `value.n < 2`, `value.exists(k, k == "n" && value[k] == 1)`} {
		for _, built := range []bool{false, true} {
			for _, ask := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, Config{})
					f.commit(`changed={"n":1}`, `deleted={"n":1}`, `stays={"n":1}`, `beside={"n":2}`)
					d := filter(t, text)
					at, g := moved(t, f, d, watch.Config{})
					both(f, g, `changed={"n":2}`, `deleted=`, `beside={"n":3}`)
					both(f, g, `new={"n":1}`, `between={"n":1}`)
					both(f, g, `between={"n":2}`, `beside=`)
					if built {
						subscribe(t, g.open(d, "other"), nil)
					}
					got := resumed(t, g, d, at, ask)
					expectTexts(t, got, "-changed@3", "-deleted@3", "-between@5", `new={"n":1}@4`, "end@5")
				})
			}
		}
	}
}

// TestNotMadeAgain: a view knows what its watch knew when it was made, and resumes readers from
// there on. It is never made again for a reader, which would keep changes from others: older
// positions, however many, are answered with a reset at once.
func TestNotMadeAgain(t *testing.T) {
	for _, text := range []string{`value.n == 1`, `value.exists(k, k == "n" && value[k] == 1)`} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Config{})
			d := filter(t, text)
			f.commit(`a={"n":1}`, `b={"n":1}`, `c={"n":1}`)
			g := newFixtureOf(t, f.upstream, Config{}, watch.Config{})
			s := subscribe(t, f.open(d, "c"), nil)
			place := func() *stream.Position {
				s.read()
				s.Bookmark(&s.batch)
				return s.at(t)
			}
			oldest := place()
			both(f, g, `a={"n":2}`)
			for range 60 { // the watch forgets what a was
				both(f, g, fmt.Sprintf(`large={"n":3,"x":"%s"}`, strings.Repeat("x", 64<<10)))
			}
			older := place()
			both(f, g, `b={"n":2}`)
			newer := place()
			both(f, g, `c={"n":2}`)
			now := g.base.Snapshot().Revision()
			live := subscribe(t, g.open(d, "live"), nil)
			live.expect(t, "reset initial", fmt.Sprint("end@", now))
			began, builds := time.Now(), g.views.Stats().Builds
			b, c, end := fmt.Sprint("-b@", now-1), fmt.Sprint("-c@", now), fmt.Sprint("end@", now)
			expectTexts(t, resumed(t, g, d, newer, false), c, end)
			expectTexts(t, resumed(t, g, d, older, true), b, c, end)
			for range 3 {
				expectTexts(t, resumed(t, g, d, oldest, true), "reset expired", end)
			}
			if n := g.views.Stats().Builds - builds; n != 0 || time.Since(began) > 0 {
				t.Errorf("the view was made again %d times, and readers waited %s", n, time.Since(began))
			}
			both(f, g, `d={"n":1}`)
			live.expect(t, fmt.Sprintf(`d={"n":1}@%d`, now+1))
		})
	}
}

// TestBeyondTheHorizon: what the watch has forgotten, no view of it knows.
func TestBeyondTheHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":1}`)
		d := filter(t, `value.n == 1`)
		at, g := moved(t, f, d, watch.Config{History: log.Retention{MaxDeletes: 1}})
		both(f, g, `a=`)
		both(f, g, `b=`)
		start := time.Now()
		expectTexts(t, resumed(t, g, d, at, false), "reset expired", "end@4")
		if time.Since(start) > 0 {
			t.Error("the reader waits for nothing")
		}
	})
}

// TestHistoryOfAView: a view remembers no more deletes than its watch may, also when it is
// built.
func TestHistoryOfAView(t *testing.T) {
	for _, built := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Config{})
			f.commit(`a={"n":1}`, `b={"n":1}`, `c={"n":1}`)
			d := filter(t, `value.n == 1`)
			at, g := moved(t, f, d, watch.Config{History: log.Retention{MaxDeletes: 2}})
			if built {
				subscribe(t, g.open(d, "c"), nil)
			}
			both(f, g, `a={"n":2}`)
			both(f, g, `b={"n":2}`)
			both(f, g, `c={"n":2}`)
			w, err := g.views.Open(g.base, d, Request{Client: "c", Resume: at})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := w.Snapshot().Tombstones(); n > 2 {
				t.Errorf("the view remembers %d deletes, and may 2", n)
			}
			got := resumed(t, g, d, at, true)
			expectTexts(t, got, "reset expired", "end@5")
		})
	}
}

// TestOtherDefinition: a position of one view is none in another, or in the watch.
func TestOtherDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`)
		at, _ := moved(t, f, filter(t, `value.n == 1`), watch.Config{})
		expectTexts(t, resumed(t, f, filter(t, `value.n < 2`), at, true), "reset epoch_changed", `a={"n":1}@2`, "end@2")
		s := subscribe(t, f.base, at)
		s.expect(t, "reset epoch_changed", `a={"n":1}@2`, "end@2")
	})
}

// TestAhead: a position that is ahead is resumed as soon as the replica is there, although
// nothing of that concerns the view.
func TestAhead(t *testing.T) {
	for _, text := range []string{`value.n == 1`, `value.n < 2`, `value.exists(k, k == "n" && value[k] == 1)`} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Config{})
			g := newFixtureOf(t, f.upstream, Config{}, watch.Config{})
			d := filter(t, text)
			f.commit(`b={"n":2}`)
			s := subscribe(t, f.open(d, "c"), nil)
			s.read()
			behind := subscribe(t, g.open(d, "c"), s.at(t))
			behind.expect(t, "status resyncing")
			changed := behind.Changed()
			g.endpoint.Catch(-1)
			synctest.Wait()
			select {
			case <-changed:
			default:
				t.Fatal("the reader is not woken")
			}
			behind.expect(t, "end@2", "status in_sync")
		})
	}
}

// TestAheadWhileHandedOver: a reader that waits when nobody feeds the view in common is
// woken once somebody does.
func TestAheadWhileHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":2}`)
		part := log.NewView(log.NewWriter(log.Config{Watch: "w"}).Log, log.Config{Watch: "w"})
		s := f.base.Snapshot()
		part.Begin(s, "x", s.DeletesCompleteTo())
		part.Publish(s)
		f.commit(`a={"n":3}`)
		ahead := f.base.Snapshot()
		if reached, _ := part.Log().Reached(ahead); reached {
			t.Fatal("it has what it was not given")
		}
		var fed log.Fed
		part.FedBy(&fed)
		if !fed.Set(ahead) || !part.Awaited() {
			t.Error("that somebody waits is forgotten")
		}
	})
}

// TestAwaitedWhileHandedOver: a reader that waits for a state that its view is given when the
// feeder takes it is woken, even if nothing is committed later.
func TestAwaitedWhileHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`)
		v := New(Config{})
		defer v.Close()
		p := &parent{of: f.base, ended: make(chan struct{}), views: map[string]*entry{}}
		for i := range p.feeders {
			p.feeders[i] = newFeeder(v, p, i == 0)
		}
		e := newEntry(v, p, filter(t, `value.n == 1`), Request{})
		e.started = true // by this test
		l, b := p.feeder(e), newBatch([]*entry{e})
		if !b.work(newTurn(p)) {
			t.Fatal("it is not built")
		}
		f.commit(`b={"n":2}`)
		newest := f.base.Snapshot()
		reached, changed := e.state.(*log.View).Log().Reached(newest)
		if reached {
			t.Fatal("it has what it was not given")
		}
		l.advance()
		l.join(b)
		select {
		case <-changed:
		default:
			t.Error("the reader is not woken")
		}
		if reached, _ := e.state.(*log.View).Log().Reached(newest); !reached {
			t.Error("it has not what its feeder has")
		}
		e.end()
	})
}

// TestNothingHalfBuilt: while a view is built, its readers are told if that takes long, and
// get nothing before it is complete.
func TestNothingHalfBuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		for range 2 * yieldAfter / entryCosts {
			f.commit(`a={"n":1}`)
		}
		v := New(Config{})
		defer v.Close()
		p := &parent{of: f.base, ended: make(chan struct{}), views: map[string]*entry{}}
		e := newEntry(v, p, filter(t, `value.n == 1`), Request{})
		e.started = true // by this test

		s := subscribe(t, e.watch, nil)
		_, _ = e.next()
		time.Sleep(2 * buildPatience)
		if e.feed(&turn{of: p}) {
			t.Fatal("it is built in one turn")
		}
		s.expect(t, "status priming")
		if e.watch.Snapshot().Primed() {
			t.Error("half a view is visible")
		}
		for !e.feed(newTurn(p)) {
		}
		got := s.read()
		if len(got) < 2 || got[0] != "reset initial" {
			t.Errorf("read %q", got)
		}
		s.Close()
		e.end()
	})
}

// TestBuiltAgain: a view that is built again has each delete again, also the last one that
// it had.
func TestBuiltAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		d := filter(t, `value.n == 1`)
		f.commit(`a={"n":2}`, `b={"n":1}`)
		s := subscribe(t, f.open(d, "c"), nil)
		s.read()
		older := s.at(t)
		g := newFixtureOf(t, f.upstream, Config{}, watch.Config{})
		both(f, g, `a={"n":3}`)
		s.Bookmark(&s.batch)
		newer := s.at(t)
		both(f, g, `b={"n":2}`)
		expectTexts(t, resumed(t, g, d, newer, true), "-b@4", "end@4")
		expectTexts(t, resumed(t, g, d, older, true), "-b@4", "end@4")
	})
}
