package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
)

// declared is a watch of the kit that is declared by its name.
func (k *kit) declared(t *testing.T, name string) Config {
	t.Helper()
	c, err := k.make(name, "")
	if err != nil {
		t.Fatal(err)
	}
	c.Name = name
	return c
}

// byPrefix is a template of the kit whose names begin with a prefix.
func (k *kit) byPrefix(name, prefix string) TemplateConfig {
	return TemplateConfig{Name: name, Match: func(name string) bool { return strings.HasPrefix(name, prefix) }, Make: k.make}
}

func replaced(w *Watch) bool {
	_, replaced := w.Removed()
	return replaced
}

func isDone(w *Watch) bool {
	select {
	case <-w.Done():
		return true
	default:
		return false
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestDraftKeepsReplacesRemovesAndAdds commits a draft that has one watch of each kind.
func TestDraftKeepsReplacesRemovesAndAdds(t *testing.T) {
	inKit(t, 3, func(t *testing.T, k *kit) {
		before := map[string]*Watch{}
		for _, name := range []string{"kept", "replaced", "removed"} {
			before[name] = must[*Watch](t)(k.registry.Add(k.declared(t, name)))
			sub := before[name].Subscribe(log.SubscribeOptions{})
			defer sub.Close()
		}
		pass(time.Second)
		d := k.registry.Draft()
		if !d.Keep("kept") || d.Keep("kept") || d.Keep("unknown") || !d.KeepTemplate("t-{x}") || d.KeepTemplate("t-{x}") || d.KeepTemplate("u-{x}") {
			t.Fatal("want each that exists kept, and once")
		}
		replacing := must[*Watch](t)(d.Add(k.declared(t, "replaced")))
		must[*Watch](t)(d.Add(k.declared(t, "added")))
		if _, err := d.Add(k.declared(t, "added")); err == nil {
			t.Error("a name was added twice")
		}
		synctest.Wait()
		if n := k.watching.Load(); n != 3 {
			t.Errorf("%d sources are followed before Commit, want 3", n)
		}
		if now, _ := k.registry.Watch("replaced"); now != before["replaced"] || isDone(now) {
			t.Error("the draft has an effect before Commit")
		}
		d.Commit()
		k.wantNames(t, "added", "kept", "replaced")
		if w, _ := k.registry.Watch("kept"); w != before["kept"] || isDone(w) || w.Subscribers() != 1 {
			t.Error("the watch that was kept was touched")
		}
		if w, _ := k.registry.Watch("replaced"); w != replacing {
			t.Error("the registry has the old watch")
		}
		for name, want := range map[string]bool{"replaced": true, "removed": false} {
			if w := before[name]; !isDone(w) || replaced(w) != want {
				t.Errorf("%s: done %v, replaced %v, want true and %v", name, isDone(w), replaced(w), want)
			}
		}
		synctest.Wait()
		if n := k.watching.Load(); n != 3 {
			t.Errorf("%d sources are followed, want 3", n)
		}
	})
}

func (k *kit) wantNames(t *testing.T, names ...string) {
	t.Helper()
	var got []string
	for _, w := range k.registry.Watches() {
		got = append(got, w.Name())
	}
	if !slices.Equal(got, names) {
		t.Errorf("the registry has %q, want %q", got, names)
	}
}

// TestDiscardedDraftHasNoEffect: what was added to it is closed, and holds no memory.
func TestDiscardedDraftHasNoEffect(t *testing.T) {
	inKit(t, 3, func(t *testing.T, k *kit) {
		shared := memory.NewCeiling(1 << 20)
		must[*Watch](t)(k.registry.Add(k.declared(t, "a")))
		d := k.registry.Draft()
		c := k.declared(t, "a")
		c.Memory = shared
		added := must[*Watch](t)(d.Add(c))
		if err := d.AddTemplate(k.byPrefix("u-{x}", "u-")); err != nil {
			t.Fatal(err)
		}
		d.Discard()
		if !isDone(added) || k.closed.Load() != 1 || shared.Logs() != 0 {
			t.Errorf("done %v, %d closed, %d bytes: want true, 1 and 0", isDone(added), k.closed.Load(), shared.Logs())
		}
		if w, _ := k.registry.Watch("a"); w == added || isDone(w) {
			t.Error("the watch was replaced")
		}
		if _, err := k.registry.Open("u-a"); !errors.Is(err, ErrNoWatch) {
			t.Errorf("got %v, want ErrNoWatch", err)
		}
		k.open(t, "t-a")
	})
}

// TestDraftOfTemplates checks which watches of templates stay: those that the same template
// would make.
func TestDraftOfTemplates(t *testing.T) {
	for name, c := range map[string]struct {
		draft          func(*testing.T, *kit, *Draft)
		stays, replace bool
	}{
		"kept":               {func(_ *testing.T, _ *kit, d *Draft) { d.KeepTemplate("t-{x}") }, true, false},
		"removed":            {func(*testing.T, *kit, *Draft) {}, false, false},
		"replaced":           {func(_ *testing.T, k *kit, d *Draft) { d.AddTemplate(k.byPrefix("t-{x}", "t-")) }, false, true},
		"replaced by others": {func(_ *testing.T, k *kit, d *Draft) { d.AddTemplate(k.byPrefix("t-{x}", "u-")) }, false, false},
		"another before it": {func(_ *testing.T, k *kit, d *Draft) {
			d.AddTemplate(k.byPrefix("t-a{x}", "t-a"))
			d.KeepTemplate("t-{x}")
		}, false, true},
		"another after it": {func(_ *testing.T, k *kit, d *Draft) {
			d.KeepTemplate("t-{x}")
			d.AddTemplate(k.byPrefix("t-a{x}", "t-a"))
		}, true, false},
		"declared": {func(t *testing.T, k *kit, d *Draft) {
			d.KeepTemplate("t-{x}")
			must[*Watch](t)(d.Add(k.declared(t, "t-a")))
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			inKit(t, 3, func(t *testing.T, k *kit) {
				w := k.open(t, "t-a")
				sub := w.Subscribe(log.SubscribeOptions{})
				defer sub.Close()
				d := k.registry.Draft()
				c.draft(t, k, d)
				d.Commit()
				if isDone(w) == c.stays || replaced(w) != c.replace {
					t.Errorf("done %v, replaced %v", isDone(w), replaced(w))
				}
				again, err := k.registry.Open("t-a")
				switch {
				case c.stays && again != w, c.replace && (err != nil || again == w):
					t.Errorf("Open: %v, %v", again == w, err)
				case !c.stays && !c.replace && !errors.Is(err, ErrNoWatch):
					t.Errorf("got %v, want ErrNoWatch", err)
				}
			})
		})
	}
}

// TestRequestsDuringCommits: a name that is always served, now by a watch and now by one or
// another template, is never unknown to a request.
func TestRequestsDuringCommits(t *testing.T) {
	k := &kit{registry: NewRegistry()}
	defer k.registry.Close()
	k.registry.AddTemplate(k.byPrefix("0", "t-"))
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				w, err := k.registry.Open("t-a")
				if err != nil {
					t.Errorf("Open: %v", err)
					return
				}
				w.Subscribe(log.SubscribeOptions{}).Close()
			}
		})
	}
	for i := range 300 {
		d := k.registry.Draft()
		if i%3 == 0 {
			must[*Watch](t)(d.Add(k.declared(t, "t-a")))
		} else if err := d.AddTemplate(k.byPrefix(fmt.Sprint(i), "t-")); err != nil {
			t.Fatal(err)
		}
		d.Commit()
	}
	close(stop)
	asking.Wait()
	k.registry.Close()
	if k.made.Load() != k.closed.Load() {
		t.Errorf("%d sources were made and %d closed", k.made.Load(), k.closed.Load())
	}
}
