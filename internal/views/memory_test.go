package views

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// fill makes n resources of about a KiB each in a team.
func (f *fixture) fill(team string, n int) {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf(`%s/%d={"team":"%s","x":"%s"}`, team, i, team, strings.Repeat("x", 1000))
	}
	f.commit(texts...)
}

func (f *fixture) team(name string) *watch.Watch {
	f.t.Helper()
	w := f.open(filter(f.t, fmt.Sprintf(`value.team == %q`, name)), name)
	return w
}

// TestMemoryOfIdleViews: where views hold too much, only as many idle ones go as are too
// many, those that have been idle for longest first.
func TestMemoryOfIdleViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxBytes: 600 << 10, Linger: time.Hour})
		for _, team := range []string{"a", "b", "c", "d"} {
			f.fill(team, 100)
		}
		var all []*watch.Watch
		for _, team := range []string{"a", "b", "c"} {
			all = append(all, f.team(team))
			time.Sleep(2 * justOpened)
		}
		if n := f.views.Stats().Views; n != 3 {
			t.Fatalf("%d of three views are there, with %d bytes", n, f.views.holds())
		}
		d := f.team("d")
		for i, w := range all {
			select {
			case <-w.Done():
				if i > 0 {
					t.Errorf("view %d is gone", i)
				}
			default:
				if i == 0 {
					t.Error("the first view is still there")
				}
			}
		}
		if d.Snapshot().Count() != 100 || f.views.leaving.Load() != 0 {
			t.Errorf("the new view has %d resources; %d bytes are leaving", d.Snapshot().Count(), f.views.leaving.Load())
		}
	})
}

// TestMemoryOfUsedViews: without idle views the largest loses its state, and no other one.
// It comes back when there is room, also if nothing happens. The watch is as before.
func TestMemoryOfUsedViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxBytes: 500_000, Linger: time.Second})
		f.fill("a", 150)
		f.fill("b", 110)
		f.fill("c", 100)
		a, b := f.team("a"), f.team("b")
		reader, other := subscribe(t, a, nil), subscribe(t, b, nil)
		reader.read()
		other.read()
		c := subscribe(t, f.team("c"), nil)
		time.Sleep(retryEvery / 2)
		if got := reader.read(); len(got) != 1 || got[0] != "status stale" || a.Status().Reason != noRoom {
			t.Errorf("the reader of the largest view read %q", got)
		}
		if b.Snapshot().Count() != 110 || len(c.read()) != 102 || f.base.Status().State != stream.InSync {
			t.Errorf("another view has %d resources, the watch is %v", b.Snapshot().Count(), f.base.Status())
		}
		_, err := f.views.Open(f.base, filter(t, `value.team == "a"`), Request{Client: "x"})
		refused(t, err, NoMemory)
		if held := f.views.holds(); held > 500_000 || f.views.leaving.Load() != 0 {
			t.Errorf("%d bytes are held, %d are leaving", held, f.views.leaving.Load())
		}
		f.fill("d", 1)
		if a.Snapshot().Primed() {
			t.Error("the largest view is built again before there is room")
		}
		c.Close()
		time.Sleep(2 * retryEvery)
		if got := reader.read(); a.Snapshot().Count() != 150 || len(got) < 152 {
			t.Errorf("the view has %d resources, its reader read %d events", a.Snapshot().Count(), len(got))
		}
	})
}

// TestMemoryOfAnotherClient: where used views hold too much, the client that is charged for the most loses its largest one, and no
// other client does, although that has the largest of all.
func TestMemoryOfAnotherClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxBytes: 700_000, Linger: time.Second})
		f.fill("a", 150)
		f.fill("b", 100)
		f.fill("c", 110)
		f.fill("d", 100)
		f.fill("e", 100)
		a := f.team("a")
		subscribe(t, a, nil).read()
		all := map[string]*watch.Watch{}
		for _, team := range []string{"b", "c", "d", "e"} {
			all[team] = f.open(filter(t, fmt.Sprintf(`value.team == %q`, team)), "greedy")
			subscribe(t, all[team], nil).read()
		}
		synctest.Wait()
		if a.Status().State != stream.InSync {
			t.Errorf("the view of another client is %v", a.Status())
		}
		stale := 0
		for _, w := range all {
			if w.Status().Reason == noRoom {
				stale++
			}
		}
		if stale == 0 {
			t.Error("nothing is stale: there was room")
		}
	})
}

// TestMemoryIsCounted: what views hold is what their logs hold, and nothing in the end.
func TestMemoryIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{Linger: time.Second})
		for _, team := range []string{"a", "b"} {
			f.fill(team, 200)
		}
		a, b := f.team("a"), f.team("b")
		readers := []*subscriber{subscribe(t, a, nil), subscribe(t, b, nil)}
		for i := range 50 {
			f.commit(fmt.Sprintf(`a/%d={"team":"b"}`, i), fmt.Sprintf(`b/%d=`, i), fmt.Sprintf(`a/%d={"team":"a"}`, 100+i))
		}
		if held, bytes := f.views.holds(), a.Snapshot().Bytes()+b.Snapshot().Bytes(); held < bytes*9/10 || held > bytes*11/10 {
			t.Errorf("%d bytes are counted, and %d held", held, bytes)
		}
		for _, s := range readers {
			s.Close()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if f.views.holds() != 0 {
			t.Errorf("%d bytes of no views are counted", f.views.holds())
		}
	})
}

// TestFullWhileHandedOver: a view that must give up its memory while a builder has it does
// so when it comes back.
func TestFullWhileHandedOver(t *testing.T) {
	for name, costly := range map[string]string{"fed": `value.n == 1`, "costly": `value.exists(k, k == "n")`} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Config{})
			f.commit(`a={"n":1}`)
			v := New(Config{})
			defer v.Close()
			p := &parent{of: f.base, ended: make(chan struct{}), views: map[string]*entry{}}
			for i := range p.feeders {
				p.feeders[i] = newFeeder(v, p, i == 0)
			}
			e := newEntry(v, p, filter(t, costly), Request{})
			e.started = true // by this test
			l := p.feeder(e)
			l.advance()
			b := newBatch([]*entry{e})
			if turn := newTurn(p); name == "fed" && !b.work(turn) || name == "costly" && !e.feed(turn) {
				t.Fatal("it is not built")
			}
			e.full.Store(true)
			l.handle(fails, e)
			if name == "fed" {
				l.join(b)
			} else {
				l.suspend(e)
			}
			if e.watch.Snapshot().Primed() || e.watch.Status().State != stream.Stale || v.holds() > 4<<10 {
				t.Errorf("%s: it has its state: %v, %d bytes", name, e.watch.Status(), v.holds())
			}
			if _, suspended := l.suspended[e]; !suspended {
				t.Errorf("%s: nobody has it", name)
			}
			e.end()
		})
	}
}

// TestOldVersionsGoFirst: where views hold too much, what only slow readers hold goes before the
// state of any view.
func TestOldVersionsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxBytes: 10 << 20})
		f.fill("a", 400)
		w := f.team("a")
		slow := subscribe(t, w, nil)
		slow.Next(&slow.batch) // the reset
		slow.Next(&slow.batch)
		f.fill("a", 400)
		f.fill("a", 400)
		live, held := w.Snapshot().Bytes(), f.views.memory.Superseded()
		if held < live/2 {
			t.Fatalf("the slow reader does not hold an old state: %d bytes, and %d are served", held, live)
		}
		f.views.Reconfigure(Config{MaxBytes: live + held/2})
		synctest.Wait()
		if got := w.Status(); got.State != stream.InSync || !w.Snapshot().Primed() {
			t.Errorf("a view has lost its state to a slow reader: %v", got)
		}
		if got := slow.read(); got[0] != "status catching_up" {
			t.Errorf("the slow reader goes on with %q", got[0])
		}
	})
}

// TestReconfigure: other limits hold at once, for views that are there too.
func TestReconfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{Linger: time.Hour})
		f.fill("a", 100)
		f.fill("b", 100)
		used := subscribe(t, f.team("a"), nil)
		used.read()
		idle := f.team("b")
		time.Sleep(2 * justOpened)
		f.views.Reconfigure(Config{MaxBytes: 250 << 10, Linger: time.Hour})
		select {
		case <-idle.Done():
		default:
			t.Error("the idle view keeps its memory")
		}
		if got := used.read(); len(got) != 0 {
			t.Errorf("the view that is used fits, and its reader read %q", got)
		}
		f.views.Reconfigure(Config{Max: 1, Linger: time.Second})
		if _, err := f.views.Open(f.base, filter(t, "value.team == 'b'"), Request{Client: "c"}); err == nil {
			t.Error("a second view was opened, of one at most")
		}
		f.views.Reconfigure(Config{Max: 2, Linger: time.Second})
		f.team("b")
		time.Sleep(time.Second + 1)
		if n := f.views.Stats().Views; n != 1 {
			t.Errorf("%d views after the new time to linger, want 1", n)
		}
	})
}

// TestBuiltWhileItsWatchGoesOn: a view that lags alone gets what was committed while it was
// built, even if nothing is committed later.
func TestBuiltWhileItsWatchGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		var resources []string
		for i := range 2 * yieldAfter / entryCosts {
			resources = append(resources, fmt.Sprintf(`a/%d={"n":1}`, i))
		}
		f.commit(resources...)
		v := New(Config{})
		defer v.Close()
		p := &parent{of: f.base, ended: make(chan struct{}), views: map[string]*entry{}}
		for i := range p.feeders {
			p.feeders[i] = newFeeder(v, p, i == 0)
		}
		e := newEntry(v, p, filter(t, `value.exists(k, k == "n")`), Request{})
		e.started = true // by this test
		l := p.feeder(e)
		l.advance()
		if e.feed(&turn{of: p}) {
			t.Fatal("it is built in a turn that is over")
		}
		f.commit(`b={"n":1}`)
		l.advance()
		if !e.feed(newTurn(p)) {
			t.Fatal("it is not built")
		}
		l.handle(suspends, e)
		for range 10 {
			synctest.Wait()
			l.read()
		}
		if n := e.watch.Snapshot().Count(); n != len(resources)+1 {
			t.Errorf("it has %d resources, want %d", n, len(resources)+1)
		}
		e.removed.Store(true)
		l.handle(leaves, e)
	})
}
