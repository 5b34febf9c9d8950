package views

import (
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestDeclaredAfterARestart: the name of a view depends on what it selects, and on its upstream,
// so a position is resumed in the next process as one of the watch is.
func TestDeclaredAfterARestart(t *testing.T) {
	for deletes, epoch := range map[streamtest.DeleteRevisions]string{
		streamtest.OwnRevision: "43xrhb3nxtan5guoki6rh", streamtest.NoRevision: "_uy4s6r5rnwa67hgaarh54",
	} {
		for _, news := range [][]string{nil, {`b={"team":"a","n":2}`}, {`b={"team":"a","n":2}`, `c={"team":"b","n":2}`}} {
			synctest.Test(t, func(t *testing.T) {
				u := streamtest.NewUpstream("e", deletes)
				start := func() (f *fixture, v *watch.Watch) {
					f = newFixtureOf(t, u, Config{}, watch.Config{})
					return f, f.declare(watch.Config{}, view.Params{Filter: ofTeamA, Fields: []string{"n"}})
				}
				f, v := start()
				f.commit(`a={"team":"a","n":1}`, `b={"team":"a","n":1}`, `c={"team":"b","n":1}`)
				if got := v.Snapshot().Epoch(); got != epoch {
					t.Errorf("the epoch is %q, and was %q in other builds", got, epoch)
				}
				of, s := subscribe(t, f.base, nil), subscribe(t, v, nil)
				of.read()
				s.read()
				ofWatch, ofView := of.at(t), s.at(t)
				f.registry.Close()
				if news != nil {
					f.write(news...)
				}
				g, w := start()
				g.endpoint.Catch(-1)
				synctest.Wait()
				expectSameOutcome(t, subscribe(t, g.base, ofWatch), subscribe(t, w, ofView))
			})
		}
	}
}

// expectSameOutcome checks that a reader of a view resumes if one of its watch does.
func expectSameOutcome(t *testing.T, of, s *subscriber) {
	t.Helper()
	if ofWatch, got := of.read(), s.read(); of.Outcome() != s.Outcome() || of.Outcome() == log.OutcomePending {
		t.Errorf("the outcome is %v, and %v in the watch: %q, %q", s.Outcome(), of.Outcome(), got, ofWatch)
	}
}

// TestViewsOfDeclared: a view does not have values that its watch had before the view was made. So
// a view of it resumes no position from before: what left it then is not known.
func TestViewsOfDeclared(t *testing.T) {
	further := view.Params{Filter: `value.n == 1`}
	for name, open := range map[string]func(f *fixture, of *watch.Watch, from *stream.Position) *watch.Watch{
		"asked for": func(f *fixture, of *watch.Watch, from *stream.Position) *watch.Watch {
			w, err := f.views.Open(of, definition(t, further), Request{Client: "c", Resume: from})
			if err != nil {
				t.Fatal(err)
			}
			return w
		},
		"declared": func(f *fixture, of *watch.Watch, _ *stream.Position) *watch.Watch {
			return f.declareOf(of, watch.Config{Name: "vv"}, further)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { viewOfDeclared(t, open) })
		})
	}
}

func viewOfDeclared(t *testing.T, open func(f *fixture, of *watch.Watch, from *stream.Position) *watch.Watch) {
	f := newFixture(t, Config{})
	f.commit(`k={"team":"a","n":1}`)
	s := subscribe(t, open(f, f.declare(watch.Config{}, view.Params{Filter: ofTeamA}), nil), nil)
	s.expect(t, "reset initial", `k={"team":"a","n":1}@2`, "end@2")
	from := s.at(t)
	g := newFixtureOf(t, f.upstream, Config{}, watch.Config{})
	both(f, g, `k={"team":"a","n":2}`)
	s.expect(t, "-k@3")
	v := g.declare(watch.Config{}, view.Params{Filter: ofTeamA})
	late := subscribe(t, open(g, v, from), from)
	got := late.read()
	if n := len(got); n < 2 || got[n-2] != "reset expired" || got[n-1] != "end@3" {
		t.Errorf("read %q", got)
	}
}
