package pass

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// What somebody followed is remembered for a while, for a bounded number of principals and of
// parts of each.
func TestFormersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := idleWatch(t)
		var f formers
		for i := range formersMost + 100 {
			f.add(fmt.Sprint("principal ", i), "e", w)
		}
		for i := range 2 * formersOfOne {
			f.add("one", fmt.Sprint("e", i), w)
		}
		if len(f.order) > formersMost || len(f.known) > formersMost || len(f.known[follower{"one", "w"}]) != formersOfOne {
			t.Errorf("%d are remembered of %d, %d of one", len(f.order), len(f.known), len(f.known[follower{"one", "w"}]))
		}
		if f.found("principal 500") != w || f.found("principal 0") != nil {
			t.Error("the oldest are not those that are forgotten")
		}
		time.Sleep(formerFor / 2)
		f.add("principal 500", "e", w)
		time.Sleep(formerFor / 2)
		if _, other := f.find(follower{"principal 500", "v"}, "e"); other || f.found("principal 500") != w || f.found("principal 501") != nil {
			t.Error("who followed again is forgotten, or who did not is not")
		}
		time.Sleep(formerFor)
		if f.found("principal 500") != nil || len(f.order)+len(f.known) != 0 {
			t.Errorf("%d are left of %d", len(f.order), len(f.known))
		}
	})
}

// A switch that is forgotten early, or one too many of somebody, is one that may have been from
// any part.
func TestSwitchesBeyondTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f formers
		for i := range 3 * formersOfOne {
			f.leave("one", fmt.Sprint("e", i))
		}
		if n := len(f.known[follower{"one", "w"}]); n > formersOfOne+1 {
			t.Errorf("%d parts of one are remembered", n)
		}
		if last, known := f.find(follower{"one", "w"}, "e20"); !known || !last.switched {
			t.Error("a switch of somebody who has too many is forgotten")
		}
		for i := range formersMost {
			f.leave(fmt.Sprint("principal ", i), "e")
		}
		if last, known := f.find(follower{"one", "w"}, "e0"); !known || !last.switched {
			t.Error("a switch is forgotten for lack of room")
		}
		time.Sleep(formerFor)
		if _, known := f.find(follower{"one", "w"}, "e0"); known {
			t.Error("it is remembered for ever")
		}
	})
}

// A part that nothing else needs is not kept in memory, however recently it was followed. That a
// stream has switched from it is remembered nevertheless.
func TestFormerPartsAreNotKept(t *testing.T) {
	var f formers
	gone := make(chan struct{})
	part := &watch.Watch{}
	runtime.AddCleanup(part, func(done chan struct{}) { close(done) }, gone)
	f.add("ann", "e", part)
	f.leave("ann", "e")
	f.add("bob", "e", part)
	runtime.KeepAlive(part)
	for {
		runtime.GC()
		select {
		case <-gone:
			if f.found("bob") != nil {
				t.Error("a part was found that is not there any more")
			}
			if last, known := f.find(follower{"ann", "w"}, "e"); !known || !last.switched {
				t.Error("a switch was forgotten with the part")
			}
			return
		default:
			runtime.Gosched()
		}
	}
}

// A part that is followed again and again is remembered once for a moment, and until its last
// time.
func TestFormerPartFollowedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f formers
		part := &watch.Watch{}
		for range 10 * int(formerFor/formerAgain) {
			f.add("ann", "e", part)
			f.add("ann", "e", part)
			time.Sleep(formerAgain)
		}
		if n, most := len(f.order), int(formerFor/formerAgain); n > most {
			t.Errorf("one part is remembered %d times, want at most %d", n, most)
		}
		f.mu.Lock()
		f.expire(time.Now().Add(formerFor - 2*formerAgain))
		f.mu.Unlock()
		if len(f.known) != 1 {
			t.Error("the last time that the part was followed is forgotten")
		}
	})
}

// A part from which a stream has switched stays one, whatever streams end after that. What was
// in it is told of one watch only.
func TestFormerPartThatWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		add := func(f *formers) { f.add("ann", "e", nil) }
		leave := func(f *formers) { f.leave("ann", "e") }
		for name, steps := range map[string][]func(*formers){
			"at once":           {leave},
			"one stream of two": {add, leave},
			"and another ends":  {leave, add},
			"and others go too": {leave, leave, add},
			"before and after":  {add, leave, add},
		} {
			for _, pause := range []time.Duration{0, formerAgain} {
				var f formers
				for _, step := range steps {
					step(&f)
					time.Sleep(pause)
				}
				if last, known := f.find(follower{"ann", "w"}, "e"); !known || !last.switched {
					t.Errorf("%s: known %t, switched %t", name, known, last.switched)
				}
				f.add("bob", "e", nil)
				if last, known := f.find(follower{"bob", "w"}, "e"); !known || last.switched {
					t.Errorf("%s: of somebody else: known %t, switched %t", name, known, last.switched)
				}
			}
		}
		var f formers
		w, replaced := idleWatch(t), idleWatch(t)
		f.add("ann", "e", w)
		f.note(follower{"ann", "w"}, "e", followed{part: weak.Make(w), sent: 7})
		if last, _ := f.find(follower{"ann", "w"}, "e"); last.part.Value() != w || last.sent != 7 {
			t.Errorf("sent up to %d", last.sent)
		}
		f.add("ann", "e", replaced)
		if f.found("ann") != nil {
			t.Error("one of two watches is taken for both")
		}
	})
}

// add notes that somebody followed a part of the watch w until the end of a stream.
func (f *formers) add(who, epoch string, part *watch.Watch) {
	f.note(follower{who, "w"}, epoch, followed{part: weak.Make(part)})
}

// leave notes that a stream of somebody has switched.
func (f *formers) leave(who, epoch string) {
	f.note(follower{who, "w"}, epoch, followed{switched: true})
}

// found returns the part that somebody followed in the epoch e.
func (f *formers) found(who string) *watch.Watch {
	last, _ := f.find(follower{who, "w"}, "e")
	return last.part.Value()
}

func idleWatch(t *testing.T) *watch.Watch {
	registry := watch.NewRegistry()
	t.Cleanup(registry.Close)
	w, err := registry.Add(watch.Config{Name: "w", Source: idle{}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// idle is a source that never has anything.
type idle struct{}

// Watch implements stream.Source.
func (idle) Watch(ctx context.Context, _ stream.Resume, _ stream.Sink) error {
	<-ctx.Done()
	return ctx.Err()
}
