package views

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

const linger = 30 * time.Second

// templated is a registry with a template of one watch at a time, and views that run on
// demand, of the watches t-a and t-b.
type templated struct {
	*rig
	a, b *watch.Watch
	made int // watches of the template
}

func newTemplated(t *testing.T) *templated {
	r := &templated{rig: &rig{t: t, registry: watch.NewRegistry(), views: NewDeclared()}}
	t.Cleanup(r.views.Close)
	t.Cleanup(r.registry.Close)
	_, err := r.registry.AddTemplate(watch.TemplateConfig{
		Name: "t-{x}", Max: 1, Match: func(name string) bool { return strings.HasPrefix(name, "t-") }, Make: r.make,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.a, r.b = r.viewOf("t-a"), r.viewOf("t-b")
	return r
}

// make makes a watch whose upstream has one more resource each time.
func (r *templated) make(string, string) (watch.Config, error) {
	r.made++
	script := []streamtest.Step{streamtest.Reset("e1")}
	for i := range r.made {
		script = append(script, streamtest.Upsert(fmt.Sprint("a/", i), uint64(i+1), "1"))
	}
	script = append(script, streamtest.Commit(uint64(r.made)), streamtest.Hang())
	return watch.Config{Source: streamtest.NewScripted(script), Linger: linger}, nil
}

func (r *templated) viewOf(name string) *watch.Watch {
	open := func() (*watch.Watch, error) { return r.registry.Open(name) }
	v, err := r.registry.Add(watch.Config{
		Name: "view-of-" + name, View: r.views.View(name, open, definition(r.t, view.Params{Prefix: "a/"})), OnDemand: true, Linger: linger,
		Backoff: watch.Backoff{Min: time.Second, Max: time.Second},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// TestViewOfATemplatesWatch checks that a view opens its watch, keeps it open while it
// runs and no longer, and opens it again.
func TestViewOfATemplatesWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTemplated(t)
		if r.isOpen("t-a") {
			t.Error("the watch is open before anybody follows the view")
		}
		for times := 1; times <= 2; times++ {
			sub := r.a.Subscribe(log.SubscribeOptions{})
			time.Sleep(time.Hour)
			if n := r.a.Snapshot().Count(); n != times || r.made != times || r.a.Status().State != stream.InSync {
				t.Errorf("time %d: %d resources, %d watches made, the view is %v", times, n, r.made, r.a.Status())
			}
			sub.Close()
			time.Sleep(2*linger - time.Second)
			if !r.isOpen("t-a") {
				t.Error("the watch does not linger after the view")
			}
			time.Sleep(2 * time.Second)
			if r.isOpen("t-a") {
				t.Error("the watch is kept although nobody follows the view")
			}
		}
	})
}

// TestViewOfATemplateThatIsFull checks that a view whose watch cannot be opened says why,
// and that it follows the watch once there is room.
func TestViewOfATemplateThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTemplated(t)
		first := r.a.Subscribe(log.SubscribeOptions{})
		time.Sleep(time.Minute)
		second := r.b.Subscribe(log.SubscribeOptions{})
		defer second.Close()
		time.Sleep(time.Minute)
		if s := r.b.Status(); !strings.Contains(s.Full(), `watch "t-b", of which this is a view: 1 watches of this kind are open, of 1 at most`) {
			t.Errorf("the view is %v: %s", s.State, s.Full())
		}
		first.Close()
		time.Sleep(time.Minute)
		if s := r.b.Status(); s.State != stream.InSync {
			t.Errorf("there is room, and the view is %v: %s", s.State, s.Full())
		}
	})
}

func (r *templated) isOpen(name string) bool {
	_, open := r.registry.Watch(name)
	return open
}
