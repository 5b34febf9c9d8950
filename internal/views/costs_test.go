package views

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/internal/view"
)

// dear are filters that can take long for a large value.
var dear = []string{
	`value.s.matches("(a|aa)+$")`, `value.s.contains("b")`, `value.s == value.t`, `value.l != value.m`, `value.s.size() > 3`, `value.l.exists(x, x == 1)`,
}

// TestCostlyViewsAreFedApart: neither the feeders of a watch nor the builders of other views ever
// have a view whose filter is dear.
func TestCostlyViewsAreFedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"s":"aa","t":"b","l":[1],"m":[2],"n":1}`)
		f.views.builders.most = 0 // there are none
		for i, text := range dear {
			w := f.open(filter(t, text), "c")
			if !w.Snapshot().Primed() {
				t.Errorf("%s is not built by builders of costly views", text)
			}
			f.commit(fmt.Sprintf(`a={"s":"aa","t":"b","l":[1],"m":[2],"n":%d}`, i))
			if got, want := w.Snapshot().Revision(), f.base.Snapshot().Revision(); got != want {
				t.Errorf("%s is at revision %d, want %d", text, got, want)
			}
		}
		synctest.Wait()
		for i, l := range f.views.watches[f.base].feeders {
			if len(l.members) != 0 {
				t.Errorf("feeder %d has %d views", i, len(l.members))
			}
		}
	})
}

// TestCheapViewsDoNotWait: views that are not costly are built while those that are have no
// builder free.
func TestCheapViewsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"s":"aa","n":1}`)
		f.views.costly.most = 0 // all are busy
		for i := range 40 {
			if f.open(filter(t, fmt.Sprintf(`value.s.matches("a{%d}")`, i+1)), "attacker").Snapshot().Primed() {
				t.Error("a costly view is built by the builders of others")
			}
		}
		for _, d := range []*view.Definition{filter(t, `value.n == 1`), filter(t, `value.n > 0`), definition(t, view.Params{Fields: []string{"n"}}), definition(t, view.Params{Grants: []view.Grant{{Filter: `value.n == 1`}}})} {
			if !f.open(d, "c").Snapshot().Primed() {
				t.Errorf("%v waits for costly views", d.Params())
			}
		}
	})
}

// TestTurnGoesByWork: a turn that is over ends after the first resource that takes long, and
// not before there was some work.
func TestTurnGoesByWork(t *testing.T) {
	for name, c := range map[string]struct {
		filter, value string
		entries       int // of a turn that is over
	}{
		"a pattern":    {`value.s.matches("(a|aa)+$")`, strings.Repeat("a", 2000), 1},
		"large values": {`value.x == 1`, strings.Repeat("a", 30_000), 1},
		"little work":  {`value.x == 1`, "a", 50},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Config{})
			var resources []string
			for i := range 200 {
				resources = append(resources, fmt.Sprintf(`%03d={"s":%q}`, i, c.value))
			}
			f.commit(resources...)
			v := New(Config{})
			defer v.Close()
			p := &parent{of: f.base, ended: make(chan struct{}), views: map[string]*entry{}}
			e := newEntry(v, p, filter(t, c.filter), Request{})
			e.started = true // by this test
			if e.feed(&turn{of: p}) {
				t.Fatalf("%s: the turn does not end", name)
			}
			if n := int(v.count.evaluations.Load()); n > 2*c.entries || n < c.entries {
				t.Errorf("%s: the turn ends after %d resources, want about %d", name, n, c.entries)
			}
			b := newBatch([]*entry{newEntry(v, p, filter(t, `value.x == 1`), Request{})})
			before := v.count.evaluations.Load()
			if b.work(&turn{of: p}) {
				t.Fatalf("%s: the turn of a batch does not end", name)
			}
			if n := int(v.count.evaluations.Load() - before); name == "large values" && n > 2 {
				t.Errorf("%s: the turn of a batch ends after %d resources", name, n)
			}
			b.release()
			e.end()
			for e := range b.members {
				e.end()
			}
		})
	}
}

// TestBuildEndsWithItsReader: no more is done for a view that nobody waits for, or that was
// removed, and it goes on from there for the next reader.
func TestBuildEndsWithItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		var resources []string
		for i := range 20 {
			resources = append(resources, fmt.Sprintf(`%02d={"s":%q}`, i, strings.Repeat("a", 2000)))
		}
		f.commit(resources...)
		v := New(Config{})
		defer v.Close()
		v.costly.most = 0 // this test is the builder
		w, err := v.Open(f.base, filter(t, `value.s.matches("(a|aa)+$")`), Request{Client: "c"})
		if err != nil {
			t.Fatal(err)
		}
		s := subscribe(t, w, nil)
		j, _ := v.costly.take()
		e := j.view
		if v.costly.feed(e, &turn{of: e.parent}) {
			t.Fatal("it is built in a turn that is over")
		}
		s.Close()
		before := v.count.evaluations.Load()
		if !v.costly.feed(e, newTurn(e.parent)) || v.count.evaluations.Load() != before || e.started || e.target != nil {
			t.Errorf("it is built for nobody: %d evaluations more", v.count.evaluations.Load()-before)
		}
		s = subscribe(t, w, nil)
		if j, ok := v.costly.take(); !ok || j.view != e {
			t.Fatal("it does not go on for the next reader")
		}
		if !v.costly.feed(e, newTurn(e.parent)) || e.watch.Snapshot().Count() != len(resources) || v.count.evaluations.Load() != uint64(len(resources)) {
			t.Errorf("it has %d resources after %d evaluations, want %d each", e.watch.Snapshot().Count(), v.count.evaluations.Load(), len(resources))
		}
		s.Close()
	})
}

// TestGivenUpViewIsLeftAlone: once a builder gives up a view, its owner may be another builder, or
// the timer that ends idle views, at the same time. The race detector reports a builder that still
// changes the view then.
func TestGivenUpViewIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"s":"a"}`)
		for range 50 {
			v := New(Config{})
			v.costly.most = 0 // this test is the builder
			w, err := v.Open(f.base, filter(t, `value.s.matches("(a|aa)+$")`), Request{Client: "c"})
			if err != nil {
				t.Fatal(err)
			}
			s := subscribe(t, w, nil)
			j, _ := v.costly.take()
			var both sync.WaitGroup
			s.Close()
			both.Go(func() { v.costly.feed(j.view, newTurn(j.view.parent)) })
			both.Go(func() {
				for done := false; !done; runtime.Gosched() {
					v.mu.Lock()
					if done = !j.view.started; done {
						j.view.drop()
					}
					v.mu.Unlock()
				}
			})
			both.Wait()
			v.Close()
		}
	})
}

// TestMemoryOfUnfinishedViews: a view that was given up halfway loses what it has if there is no
// room for it.
func TestMemoryOfUnfinishedViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		var resources []string
		for i := range 20 {
			resources = append(resources, fmt.Sprintf(`%02d={"s":%q}`, i, strings.Repeat("a", 2000)))
		}
		f.commit(resources...)
		v := New(Config{})
		defer v.Close()
		v.costly.most = 0 // this test is the builder
		w, err := v.Open(f.base, filter(t, `value.s.matches("(a|aa)+$")`), Request{Client: "c"})
		if err != nil {
			t.Fatal(err)
		}
		s := subscribe(t, w, nil)
		j, _ := v.costly.take()
		e := j.view
		for range 10 {
			v.costly.feed(e, &turn{of: e.parent})
		}
		if !e.begun || e.bytes() == 0 {
			t.Fatalf("it has not begun: it holds %d bytes", e.bytes())
		}
		s.Close()
		v.costly.feed(e, newTurn(e.parent))
		v.Reconfigure(Config{MaxBytes: 1})
		if e.begun || !e.full.Load() {
			t.Errorf("it still holds %d bytes", e.bytes())
		}
	})
}
