package watch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// kit is a registry with one template, of names that begin with "t-".
type kit struct {
	registry *Registry
	template *Template
	made     atomic.Int64
	closed   atomic.Int64
	watching atomic.Int64 // Watch calls under way
}

// inKit runs f in fake time with a template that makes watches of one resource.
func inKit(t *testing.T, limit int, f func(*testing.T, *kit)) {
	synctest.Test(t, func(t *testing.T) {
		k := &kit{registry: NewRegistry()}
		defer func() {
			k.registry.Close()
			if k.watching.Load() != 0 || k.closed.Load() != k.made.Load() {
				t.Errorf("after Close %d calls of Watch go on, and %d of %d sources are closed",
					k.watching.Load(), k.closed.Load(), k.made.Load())
			}
		}()
		var err error
		k.template, err = k.registry.AddTemplate(TemplateConfig{
			Name: "t-{x}", Max: limit, Match: func(name string) bool { return strings.HasPrefix(name, "t-") }, Make: k.make,
		})
		if err != nil {
			t.Fatal(err)
		}
		f(t, k)
	})
}

func (k *kit) make(name, _ string) (Config, error) {
	if strings.HasSuffix(name, "none") {
		return Config{}, ErrNoWatch
	}
	k.made.Add(1)
	return Config{
		SourceName: "s", Linger: 10 * time.Second, Required: true,
		Source: stream.SourceFunc(func(ctx context.Context, r stream.Resume, sink stream.Sink) error {
			k.watching.Add(1)
			defer k.watching.Add(-1)
			return snapshotThen("e", 1, []log.Change{upsert(name, 1)}, stay)(ctx, r, sink)
		}),
		Hooks: Hooks{Close: func() { k.closed.Add(1) }},
	}, nil
}

func (k *kit) open(t *testing.T, name string) *Watch {
	t.Helper()
	w, err := k.registry.Open(name)
	if err != nil {
		t.Fatalf("Open(%q): %v", name, err)
	}
	return w
}

func (k *kit) wantOpen(t *testing.T, names ...string) {
	t.Helper()
	synctest.Wait()
	var got []string
	for _, w := range k.registry.Watches() {
		got = append(got, w.Name())
	}
	if !slices.Equal(got, names) {
		t.Errorf("open: %q, want %q", got, names)
	}
	if n := len(k.template.Watches()); n != len(names) {
		t.Errorf("the template has %d watches, want %d", n, len(names))
	}
}

// pass lets fake time pass.
func pass(d time.Duration) { <-time.After(d) }

// TestTemplateMakesAWatchForItsUsers checks the life of a watch of a template.
func TestTemplateMakesAWatchForItsUsers(t *testing.T) {
	inKit(t, 3, func(t *testing.T, k *kit) {
		w := k.open(t, "t-a")
		if w.Name() != "t-a" || w.Template() != k.template || !w.OnDemand() || w.Required() {
			t.Errorf("got %q of %v, on demand %v, required %v", w.Name(), w.Template(), w.OnDemand(), w.Required())
		}
		if k.open(t, "t-a") != w {
			t.Error("the second request got another watch")
		}
		sub := w.Subscribe(log.SubscribeOptions{})
		if err := w.Prime(t.Context()); err != nil || w.Snapshot().Count() != 1 {
			t.Fatalf("%v, with %d resources", err, w.Snapshot().Count())
		}
		pass(time.Hour)
		k.wantOpen(t, "t-a")
		sub.Close()
		pass(10*time.Second - 1)
		k.wantOpen(t, "t-a")
		if k.open(t, "t-a") != w {
			t.Error("a watch that lingers was made again")
		}
		pass(10*time.Second - 1)
		k.wantOpen(t, "t-a") // since it was asked for
		pass(1)
		k.wantOpen(t)
		if k.watching.Load() != 0 || k.closed.Load() != 1 {
			t.Errorf("%d calls of Watch, %d closed", k.watching.Load(), k.closed.Load())
		}
		select {
		case <-w.Done():
		default:
			t.Error("a removed watch is not done")
		}
		if k.open(t, "t-a") == w {
			t.Error("a removed watch is served again")
		}
	})
}

// TestTemplateForgetsWhatWasOnlyAskedFor checks that a request alone connects to nothing and
// leaves nothing behind.
func TestTemplateForgetsWhatWasOnlyAskedFor(t *testing.T) {
	inKit(t, 3, func(t *testing.T, k *kit) {
		k.open(t, "t-a")
		k.wantOpen(t, "t-a")
		if k.watching.Load() != 0 {
			t.Error("a request has started the source")
		}
		pass(10 * time.Second)
		k.wantOpen(t)
	})
}

// TestTemplateHasAtMostMaxWatches checks which watch makes room for another one.
func TestTemplateHasAtMostMaxWatches(t *testing.T) {
	inKit(t, 3, func(t *testing.T, k *kit) {
		refused := func(name string) {
			t.Helper()
			var full *FullError
			if _, err := k.registry.Open(name); !errors.As(err, &full) || full.Open != 3 || full.Max != 3 {
				t.Errorf("Open(%q): got %v", name, err)
			}
		}
		held := k.open(t, "t-held").Subscribe(log.SubscribeOptions{})
		defer held.Close()
		k.open(t, "t-first")
		pass(time.Second)
		k.open(t, "t-second")
		refused("t-more") // both were only just asked for
		k.wantOpen(t, "t-first", "t-held", "t-second")
		pass(settle - time.Second)
		k.open(t, "t-more")
		k.wantOpen(t, "t-held", "t-more", "t-second")
		pass(time.Second - 1)
		refused("t-other")
		k.open(t, "t-second")
		pass(settle - 1)
		k.open(t, "t-other") // t-more was asked for before t-second was again
		k.wantOpen(t, "t-held", "t-other", "t-second")
		sub := k.open(t, "t-second").Subscribe(log.SubscribeOptions{})
		pass(settle)
		sub.Close()
		k.open(t, "t-more")
		k.wantOpen(t, "t-held", "t-more", "t-second")
		refused("t-x") // t-second was only just left
	})
}

// TestTemplateWaitsForWatchesOnTheirWayOut checks that sources that end slowly do not
// pile up.
func TestTemplateWaitsForWatchesOnTheirWayOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry()
		slow, running := make(chan struct{}), atomic.Int64{}
		tpl, err := r.AddTemplate(TemplateConfig{
			Name: "{x}", Max: 2, Match: func(string) bool { return true },
			Make: func(string, string) (Config, error) {
				return Config{Source: stream.SourceFunc(func(context.Context, stream.Resume, stream.Sink) error {
					running.Add(1)
					defer running.Add(-1)
					<-slow
					return nil
				})}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		for i := range 20 {
			w, err := r.Open(fmt.Sprint("n", i))
			if err != nil {
				refused++
			} else {
				sub := w.Subscribe(log.SubscribeOptions{})
				synctest.Wait()
				sub.Close()
			}
			if running.Load() > 4 {
				t.Fatalf("%d sources are running", running.Load())
			}
			pass(settle)
		}
		pass(time.Minute)
		synctest.Wait()
		if refused != 16 || running.Load() != 4 || len(tpl.leaving) != 4 || len(tpl.Watches()) != 0 {
			t.Errorf("%d refused, %d running, %d open, %d on their way out", refused, running.Load(), len(tpl.Watches()), len(tpl.leaving))
		}
		close(slow)
		r.Close()
	})
}

// TestTemplateMakesAWatchOnce checks that requests for one name at a time share what is
// made for the first.
func TestTemplateMakesAWatchOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry()
		defer r.Close()
		gate, made := make(chan error), atomic.Int64{}
		_, err := r.AddTemplate(TemplateConfig{
			Name: "{x}", Match: func(string) bool { return true },
			Make: func(string, string) (Config, error) {
				made.Add(1)
				err := <-gate
				return Config{Source: stream.SourceFunc(stay)}, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *Watch, 10)
		for range 10 {
			go func() {
				w, _ := r.Open("n")
				got <- w
			}()
		}
		synctest.Wait()
		if made.Load() != 1 || len(got) != 0 {
			t.Errorf("made %d times", made.Load())
		}
		gate <- errors.New("no") // the next one tries again
		synctest.Wait()
		if made.Load() != 2 {
			t.Errorf("made %d times", made.Load())
		}
		gate <- nil
		synctest.Wait()
		first, same := (*Watch)(nil), 0
		for range 10 {
			if w := <-got; w != nil && (first == nil || w == first) {
				first, same = w, same+1
			}
		}
		if same != 9 || made.Load() != 2 {
			t.Errorf("%d requests got the same watch, which was made %d times", same, made.Load())
		}
	})
}

// TestOpenFindsTheRightWatch checks names, errors, and which of several is meant.
func TestOpenFindsTheRightWatch(t *testing.T) {
	inKit(t, 3, func(t *testing.T, k *kit) {
		declared, err := k.registry.Add(Config{Name: "t-declared", Source: stream.SourceFunc(stay)})
		if err != nil {
			t.Fatal(err)
		}
		broken := errors.New("broken")
		for _, c := range []TemplateConfig{
			{Name: "later", Match: func(name string) bool { return true }, Make: func(string, string) (Config, error) { return Config{}, broken }},
		} {
			if _, err := k.registry.AddTemplate(c); err != nil {
				t.Fatal(err)
			}
			if _, err := k.registry.AddTemplate(c); err == nil {
				t.Error("a template was added twice")
			}
		}
		if w := k.open(t, "t-declared"); w != declared || w.Template() != nil {
			t.Error("a template has made a watch that was declared")
		}
		if w := k.open(t, "t-a"); w.Template() != k.template {
			t.Error("the first template was not used")
		}
		for name, want := range map[string]error{
			"t-none": ErrNoWatch, "t-a/b": ErrNoWatch, "t-\x00": ErrNoWatch, "t-" + strings.Repeat("x", 63): ErrNoWatch, "u": broken,
		} {
			if w, err := k.registry.Open(name); w != nil || err != want {
				t.Errorf("Open(%q): got %v, %v", name, w, err)
			}
		}
		if _, err := k.registry.AddTemplate(TemplateConfig{Name: "x"}); err == nil {
			t.Error("a template that makes nothing was added")
		}
		if _, err := k.registry.Add(Config{Name: "t-a", Source: stream.SourceFunc(stay)}); err == nil {
			t.Error("a watch was declared that is open")
		}
		k.registry.Remove("t-declared")
	})
}

// TestTemplateSurvivesAPanic checks that a name whose watch could not be made can be asked
// for again.
func TestTemplateSurvivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry()
		defer r.Close()
		first := true
		if _, err := r.AddTemplate(TemplateConfig{Name: "{x}", Match: func(string) bool { return true }, Make: func(string, string) (Config, error) {
			if first {
				first = false
				panic("first")
			}
			return Config{Source: stream.SourceFunc(stay)}, nil
		}}); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() { _ = recover() }()
			_, _ = r.Open("n")
		}()
		if _, err := r.Open("n"); err != nil {
			t.Error(err)
		}
	})
}

// TestRemovingAWatchOfATemplate checks that Remove ends it under its subscribers.
func TestRemovingAWatchOfATemplate(t *testing.T) {
	inKit(t, 1, func(t *testing.T, k *kit) {
		w := k.open(t, "t-a")
		sub := w.Subscribe(log.SubscribeOptions{})
		k.registry.Remove("t-a")
		<-w.Done()
		k.wantOpen(t)
		k.open(t, "t-a") // there is room
		sub.Close()
	})
}

// TestTemplateStatsOutliveItsWatches checks that the counters never go back.
func TestTemplateStatsOutliveItsWatches(t *testing.T) {
	inKit(t, 2, func(t *testing.T, k *kit) {
		for i := range 5 {
			if err := k.open(t, fmt.Sprint("t-", i)).Prime(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the snapshot is counted once it can be read
			if got := k.template.Stats().Resyncs["initial"]; got != uint64(i+1) {
				t.Errorf("%d snapshots, want %d", got, i+1)
			}
			pass(time.Minute)
			if got := k.template.Stats().Events["upsert"]; got != uint64(i+1) {
				t.Errorf("%d upserts, want %d", got, i+1)
			}
		}
		k.wantOpen(t)
	})
}

// TestCloseWaitsForWatchesThatAreBeingMade checks that none is left behind.
func TestCloseWaitsForWatchesThatAreBeingMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry()
		gate, closed := make(chan struct{}), atomic.Int64{}
		if _, err := r.AddTemplate(TemplateConfig{Name: "{x}", Match: func(string) bool { return true }, Make: func(string, string) (Config, error) {
			<-gate
			return Config{Source: stream.SourceFunc(stay), Hooks: Hooks{Close: func() { closed.Add(1) }}}, nil
		}}); err != nil {
			t.Fatal(err)
		}
		failed := make(chan error)
		go func() {
			_, err := r.Open("n")
			failed <- err
		}()
		synctest.Wait()
		ended := make(chan struct{})
		go func() {
			r.Close()
			close(ended)
		}()
		synctest.Wait()
		close(gate)
		if err := <-failed; err == nil {
			t.Error("a watch was opened in a closed registry")
		}
		<-ended
		if closed.Load() != 1 {
			t.Error("the source was not closed")
		}
		if _, err := r.Open("n"); err == nil || errors.Is(err, ErrNoWatch) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestNobodySubscribesToARemovedWatch has many clients open and leave watches, near the
// moments at which these are removed. Who subscribes at once never finds the watch removed.
func TestNobodySubscribesToARemovedWatch(t *testing.T) {
	inKit(t, 8, func(t *testing.T, k *kit) {
		var clients sync.WaitGroup
		var served, full atomic.Int64
		for i := range 32 {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			clients.Go(func() {
				for range 100 {
					name := fmt.Sprint("t-", random.IntN(16))
					w, err := k.registry.Open(name)
					if err != nil {
						full.Add(1)
						pass(settle)
						continue
					}
					sub := w.Subscribe(log.SubscribeOptions{})
					if err := w.Prime(t.Context()); err != nil || w.Name() != name {
						t.Errorf("%s: %v", name, err)
					}
					pass(time.Duration(random.IntN(3)) * time.Second)
					select {
					case <-w.Done():
						t.Errorf("%s was removed under its subscriber", name)
					default:
					}
					sub.Close()
					served.Add(1)
					pass([]time.Duration{1, settle - 1, settle, 10*time.Second - 1, 10 * time.Second}[random.IntN(5)])
				}
			})
		}
		clients.Wait()
		if served.Load() == 0 || full.Load() == 0 || k.made.Load() < 20 {
			t.Errorf("%d served, %d refused, %d made: want some of each", served.Load(), full.Load(), k.made.Load())
		}
		pass(time.Minute)
		k.wantOpen(t)
	})
}
