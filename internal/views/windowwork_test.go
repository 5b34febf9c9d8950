package views

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// numbered fills a watch with rows of a key each, in the order of their numbers.
func (f *fixture) numbered(rows int) {
	var texts []string
	for i := range rows {
		texts = append(texts, fmt.Sprintf(`k%04d={"n":%d}`, i, 10*i))
	}
	f.commit(texts...)
}

// theOrder returns the only order of a watch.
func (f *fixture) theOrder() *entry {
	f.views.mu.Lock()
	defer f.views.mu.Unlock()
	for _, e := range f.views.watches[f.base].views {
		if e.order != nil {
			return e
		}
	}
	return nil
}

// worked returns the work that the windows of an order make while something is done.
func worked(e *entry, do func()) int {
	before := e.order.spent
	do()
	synctest.Wait()
	return e.order.spent - before
}

// TestWindowsThatAChangeDoesNotConcern: a change makes work for the windows that it concerns, and so does opening or closing one,
// however many others there are.
func TestWindowsThatAChangeDoesNotConcern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxPerClient: 10_000})
		f.views.mostFed = 1_000_000
		f.numbered(1200)
		const windows = 400
		for i := range windows / 2 {
			subscribe(t, f.open(ordered(t, "n", 3, 3*i), "c"), nil)
			after := definition(t, view.Params{Order: "n", Limit: "2", Offset: fmt.Sprint(4*i + 1)})
			w := f.open(after, "c")
			_, about := w.Window()
			d := definition(t, view.Params{Order: "n", Limit: "3", After: about.Next})
			subscribe(t, f.open(d, "c"), nil)
		}
		time.Sleep(time.Minute) // which ends the windows without a reader
		synctest.Wait()
		e := f.theOrder()
		if n := len(e.order.windows); n != windows {
			t.Fatalf("there are %d windows, want %d", n, windows)
		}
		const few = 5 * (readCosts + writeCosts + 4)
		for what, text := range map[string]string{
			"a change at its place": `k0300={"n":3000,"x":1}`, "a move to the next place but one": `k0400={"n":4021}`, "a move behind all windows": `k1199={"n":12000}`,
		} {
			if n := worked(e, func() { f.commit(text) }); n > few {
				t.Errorf("%s makes %d work, want %d at most", what, n, few)
			}
		}
		var w *subscriber
		opens := worked(e, func() { w = subscribe(t, f.open(ordered(t, "n", 4, 9), "c"), nil) })
		closes := worked(e, func() {
			w.Close()
			time.Sleep(time.Minute)
		})
		if opens > few || closes > few || len(e.order.windows) != windows {
			t.Errorf("to open a window makes %d work, and to remove it %d; want %d at most", opens, closes, few)
		}
	})
}

// TestWindowsOfAnOrderAreLimited: a client has so many windows of one order, and so many rows in them.
func TestWindowsOfAnOrderAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxPerClient: 200})
		f.commit(`a={"n":1}`)
		for i := range 20 {
			subscribe(t, f.open(ordered(t, "n", 1, i), "c"), nil)
		}
		_, err := f.views.Open(f.base, ordered(t, "n", 1, 20), Request{Client: "c"})
		refused(t, err, TooManyWindows)
		subscribe(t, f.open(ordered(t, "n", 1, 20), "d"), nil)
		subscribe(t, f.open(ordered(t, "-n", 1, 0), "c"), nil)
		for i := range 2 {
			subscribe(t, f.open(ordered(t, "n", 1000, i), "e"), nil)
		}
		_, err = f.views.Open(f.base, ordered(t, "n", 1, 0), Request{Client: "e"})
		if err != nil {
			t.Errorf("a window that is there: %v", err)
		}
		_, err = f.views.Open(f.base, ordered(t, "n", 1, 50), Request{Client: "e"})
		refused(t, err, TooManyWindows)
	})
}

// TestFewIdleWindowsAreKept: lists leave a window each. The newest ones are kept.
func TestFewIdleWindowsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`)
		for i := range 100 {
			f.open(ordered(t, "n", 1, i), "c")
		}
		f.open(ordered(t, "n", 1, 1000), "d")
		if n := f.views.Stats().Views; n != 102 {
			t.Errorf("there are %d views before their holders could come, want 102", n)
		}
		time.Sleep(2 * justOpened)
		synctest.Wait()
		if n := f.views.Stats().Views; n != mostIdle+2 {
			t.Errorf("%d views are kept, want %d: the order, windows of one client, and one of another", n, mostIdle+2)
		}
		order := f.theOrder().order
		f.views.mu.Lock()
		for i := range 100 {
			if is := order.find(ordered(t, "n", 1, i).ID()) != nil; is != (i >= 100-mostIdle) {
				t.Errorf("window %d is there: %t", i, is)
			}
		}
		f.views.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := f.views.Stats(); s.Views != 0 || s.Bytes != 0 || len(f.views.idlers) != 0 {
			t.Errorf("%d views, %d bytes and idle windows of %d clients are left", s.Views, s.Bytes, len(f.views.idlers))
		}
	})
}

// TestOrdersWithMuchWorkAreFedAlone: those of a client that has many windows do not hold up other views, also if nobody feeds them.
func TestOrdersWithMuchWorkAreFedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.numbered(300)
		other := subscribe(t, f.open(ordered(t, "-n", 1, 0), "d"), nil)
		few := subscribe(t, f.open(ordered(t, "n,x", 1, 0), "c"), nil)
		var many *subscriber
		for i := range 200 {
			many = subscribe(t, f.open(ordered(t, "n", 1, i), "c"), nil)
		}
		for _, s := range []*subscriber{other, few, many} {
			s.lines()
		}
		f.views.mu.Lock()
		p := f.views.watches[f.base]
		alone := 0
		for _, e := range p.views {
			if e.alone.Load() {
				alone++
			}
		}
		if windows := p.fed.windows; alone != 1 || windows != 2 || p.fedOf["c"].windows != 1 {
			t.Errorf("%d orders are fed alone, and %d windows by the feeders, %d of them of the client; want 1, 2 and 1", alone, windows, p.fedOf["c"].windows)
		}
		f.views.mu.Unlock()
		release := f.views.sorting.hold()
		f.commit(`k0000={"n":9999}`)
		wantLines(t, "another client", other.lines(), "-k0299@3 left", `k0000={"n":9999}@3`, "bookmark@3 of 300")
		wantLines(t, "another order of the client", few.lines(), "-k0000@3 left", `k0001={"n":10}@2`, "bookmark@3 of 300")
		wantLines(t, "the order with many windows", many.lines())
		release()
		wantLines(t, "the order with many windows, later", many.lines(), "-k0199@3 left", `k0200={"n":2000}@2`, "bookmark@3 of 300")
		again := subscribe(t, f.open(ordered(t, "n", 1, 299), "d"), nil)
		wantLines(t, "a new window of it", again.lines(), "reset initial", `k0000={"n":9999}@3`, "end@3 of 300")
		f.commit(`l={"n":5}`)
		wantLines(t, "the next change", many.lines(), "-k0200@4 left", `k0199={"n":1990}@2`)
		f.views.mu.Lock()
		defer f.views.mu.Unlock()
		for _, e := range p.views {
			e.drop()
		}
		if p.fed != (share{}) || len(p.fedOf) != 0 {
			t.Errorf("without views %+v and %v are fed", p.fed, p.fedOf)
		}
	})
}

// TestViewThatIsBehind: a view that is fed alone, and is behind its watch for long, says so, also if the configuration declares it.
func TestViewThatIsBehind(t *testing.T) {
	costly := filter(t, `value.exists(k, k == "n")`)
	for name, open := range map[string]func(*testing.T, *fixture) (*watch.Watch, *Views){
		"of a client": func(t *testing.T, f *fixture) (*watch.Watch, *Views) {
			f.views.costly.most = 0 // the test is the builder
			w, err := f.views.Open(f.base, costly, Request{Client: "c"})
			if err != nil {
				t.Fatal(err)
			}
			return w, f.views
		},
		"declared": func(t *testing.T, f *fixture) (*watch.Watch, *Views) {
			all := NewDeclared()
			t.Cleanup(all.Close)
			all.costly.most = 0
			w, err := f.registry.Add(watch.Config{Name: "v", View: all.View("w", func() (*watch.Watch, error) { return f.base, nil }, costly)})
			if err != nil {
				t.Fatal(err)
			}
			return w, all
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, Config{})
				f.numbered(500)
				w, views := open(t, f)
				s := subscribe(t, w, nil)
				synctest.Wait()
				var e *entry
				for _, e = range views.watches[f.base].views { // the only one
				}
				turn := func(turn *turn) (done bool) {
					synctest.Wait()
					views.costly.take()
					return views.costly.feed(e, turn)
				}
				turn(endless(e.parent))
				s.read()
				want := func(when string, state stream.State) {
					t.Helper()
					if got := w.Status(); got.State != state {
						t.Errorf("%s: %v %q, want %v", when, got.State, got.Reason, state)
					}
				}
				want("made", stream.InSync)
				time.Sleep(time.Hour)
				f.numbered(500)
				if turn(shortTurn(e.parent)) {
					t.Fatal("it is fed in a turn that is over")
				}
				want("behind for a moment", stream.InSync)
				time.Sleep(2 * buildPatience)
				views.costly.feed(e, shortTurn(e.parent))
				want("behind for long", stream.Stale)
				f.commit(`k0000={"n":1}`)
				views.costly.feed(e, endless(e.parent))
				if want("at a state that was the newest long ago", stream.Stale); w.Snapshot().Revision() != 3 {
					t.Errorf("it is at %d, want 3", w.Snapshot().Revision())
				}
				turn(endless(e.parent))
				if want("at the newest", stream.InSync); w.Snapshot().Revision() != 4 {
					t.Errorf("it is at %d, want 4", w.Snapshot().Revision())
				}
			})
		})
	}
}
