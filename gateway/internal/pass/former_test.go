package pass

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

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
			f.add(fmt.Sprint("principal ", i), "w", w)
		}
		parts := make([]*watch.Watch, 2*formersOfOne)
		for i := range parts {
			parts[i] = &w.NewPart(watch.PartConfig{Held: func(bool) {}}).Watch
			f.add("one", "w", parts[i])
		}
		if len(f.order) > formersMost || len(f.known) > formersMost || len(f.known[follower{"one", "w"}]) != formersOfOne {
			t.Errorf("%d are remembered of %d, %d of one", len(f.order), len(f.known), len(f.known[follower{"one", "w"}]))
		}
		if found(&f, "principal 500", "w", "") != w || found(&f, "principal 0", "w", "") != nil {
			t.Error("the oldest are not those that are forgotten")
		}
		time.Sleep(formerFor / 2)
		f.add("principal 500", "w", w)
		time.Sleep(formerFor / 2)
		if found(&f, "principal 500", "w", "") != w || found(&f, "principal 501", "w", "") != nil || found(&f, "principal 500", "v", "") != nil {
			t.Error("who followed again is forgotten, or who did not is not")
		}
		time.Sleep(formerFor)
		if found(&f, "principal 500", "w", "") != nil || len(f.order)+len(f.known) != 0 {
			t.Errorf("%d are left of %d", len(f.order), len(f.known))
		}
	})
}

// A part that nothing else needs is not kept in memory, however recently it was followed.
func TestFormerPartsAreNotKept(t *testing.T) {
	var f formers
	gone := make(chan struct{})
	part := &watch.Watch{}
	runtime.AddCleanup(part, func(done chan struct{}) { close(done) }, gone)
	f.add("ann", "w", part)
	runtime.KeepAlive(part)
	for {
		runtime.GC()
		select {
		case <-gone:
			if found(&f, "ann", "w", "e") != nil {
				t.Error("a part was found that is not there any more")
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
			f.add("ann", "w", part)
			f.add("ann", "w", part)
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

// A part from which a stream has switched stays one, whatever streams end after that.
func TestFormerPartThatWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := idleWatch(t)
		for name, steps := range map[string][]func(*formers, string, string, *watch.Watch){
			"at once":           {(*formers).leave},
			"one stream of two": {(*formers).add, (*formers).leave},
			"and another ends":  {(*formers).leave, (*formers).add},
			"and others go too": {(*formers).leave, (*formers).leave, (*formers).add},
			"before and after":  {(*formers).add, (*formers).leave, (*formers).add},
		} {
			var f formers
			for i, step := range steps {
				step(&f, "ann", "w", w)
				time.Sleep(formerAgain)
				if part, switched := f.find("ann", "w", ""); i == len(steps)-1 && (part != w || !switched) {
					t.Errorf("%s: found %t, switched %t", name, part == w, switched)
				}
			}
			f.add("bob", "w", w)
			if part, switched := f.find("bob", "w", ""); part != w || switched {
				t.Errorf("%s: of somebody else: found %t, switched %t", name, part == w, switched)
			}
		}
	})
}

func found(f *formers, who, name, epoch string) *watch.Watch {
	part, _ := f.find(who, name, epoch)
	return part
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
