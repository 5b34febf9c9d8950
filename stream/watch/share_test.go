package watch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// following is a stream of a client of the kit.
type following struct {
	use *Use
	sub *log.Subscription
}

func (f following) close() {
	f.sub.Close()
	f.use.Release()
}

// ask opens a watch for a client, and reports whether it was not refused because of its share.
func (k *kit) ask(t *testing.T, client, name string) bool {
	t.Helper()
	_, err := k.registry.OpenFor(client, name)
	var full *FullError
	if err != nil && (!errors.As(err, &full) || !full.OfClient || full.Open != full.Max || full.Max != k.template.MaxPerClient()) {
		t.Errorf("%s opens %s: got %v", client, name, err)
	}
	return err == nil
}

// follow has a client follow a watch; false: it has its share.
func (k *kit) follow(t *testing.T, client, name string) (following, bool) {
	t.Helper()
	w, err := k.registry.OpenFor(client, name)
	if err != nil {
		return following{}, false
	}
	use, full := w.Use(client)
	if full != nil {
		return following{}, false
	}
	return following{use, w.Subscribe(log.SubscribeOptions{})}, true
}

func (k *kit) mustFollow(t *testing.T, client, name string) following {
	t.Helper()
	f, ok := k.follow(t, client, name)
	if !ok {
		t.Fatalf("%s may not follow %s", client, name)
	}
	return f
}

// wantRefused checks that a client has its share, so that it may not have the watch.
func (k *kit) wantRefused(t *testing.T, client, name string) {
	t.Helper()
	if k.ask(t, client, name) {
		t.Errorf("%s may have %s", client, name)
	}
}

// wantNoShares checks that nothing is left of clients that have left.
func (k *kit) wantNoShares(t *testing.T) {
	t.Helper()
	if s := k.template.shares; len(s.names) != 0 || len(s.streams) != 0 {
		t.Errorf("left of clients: %v, %v", s.names, s.streams)
	}
}

// TestNoClientTakesAllPlaces checks the share of a client: three quarters by default.
func TestNoClientTakesAllPlaces(t *testing.T) {
	inKit(t, 4, func(t *testing.T, k *kit) {
		var open []following
		for i := range 3 {
			open = append(open, k.mustFollow(t, "a", fmt.Sprint("t-", i)))
		}
		k.wantRefused(t, "a", "t-3")
		pass(time.Hour)
		k.wantRefused(t, "a", "t-3")
		again := k.mustFollow(t, "a", "t-0") // it counts once
		other := k.mustFollow(t, "b", "t-3")
		if _, err := k.registry.Open("t-4"); err == nil {
			t.Error("there are more places than max")
		}
		if !k.ask(t, "a", "t-3") {
			t.Error("a read of a watch that somebody else follows takes no place, and is refused")
		}
		if f, ok := k.follow(t, "a", "t-3"); ok {
			t.Error("a client follows more than its share, since others follow it too")
			f.close()
		}
		again.close()
		k.wantRefused(t, "a", "t-5")
		open[0].close()
		pass(settle)
		open = append(open[1:], k.mustFollow(t, "a", "t-3"))
		for _, f := range append(open, other) {
			f.close()
		}
		k.wantNoShares(t)
	})
}

// TestShareOfATemplate checks how large it is.
func TestShareOfATemplate(t *testing.T) {
	for _, test := range []struct{ max, share, want int }{
		{0, 0, 75}, {1, 0, 1}, {2, 0, 1}, {3, 0, 2}, {4, 0, 3}, {100, 100, 100}, {100, 1, 1}, {10, 20, 10},
	} {
		made, err := newTemplate(nil, TemplateConfig{
			Name: "x", Max: test.max, MaxPerClient: test.share, Match: func(string) bool { return true },
			Make: func(string, string) (Config, error) { return Config{}, ErrNoWatch },
		})
		if err != nil || made.MaxPerClient() != test.want {
			t.Errorf("max %d, share %d: got %d, %v, want %d", test.max, test.share, made.MaxPerClient(), err, test.want)
		}
	}
}

// TestRequestsCountForTheirClient: they keep a watch for a while, so they count as long as they
// do.
func TestRequestsCountForTheirClient(t *testing.T) {
	inKit(t, 4, func(t *testing.T, k *kit) {
		for i := range 3 {
			k.ask(t, "a", fmt.Sprint("t-", i))
		}
		k.wantRefused(t, "a", "t-3")
		if !k.ask(t, "b", "t-3") {
			t.Error("the place that is left is refused")
		}
		pass(settle / 2)
		k.wantRefused(t, "a", "t-3") // its request would keep what the other one leaves
		if !k.ask(t, "a", "t-0") {
			t.Error("a client may not read again what it has read")
		}
		pass(settle / 2)
		for i := 4; i < 8; i++ { // b, too, may take the places that are not used any more
			if got, want := k.ask(t, "b", fmt.Sprint("t-", i)), i < 7; got != want {
				t.Errorf("place %d: %t", i, got)
			}
			pass(1)
		}
	})
}

// TestWhoLeavesIsNotCharged: a watch counts for those who follow it, not for the first of them.
func TestWhoLeavesIsNotCharged(t *testing.T) {
	inKit(t, 4, func(t *testing.T, k *kit) {
		var first, second []following
		for i := range 3 {
			first = append(first, k.mustFollow(t, "first", fmt.Sprint("t-", i)))
			second = append(second, k.mustFollow(t, "second", fmt.Sprint("t-", i)))
		}
		for _, f := range first {
			f.close()
		}
		if !k.ask(t, "first", "t-3") {
			t.Error("a client is charged for what others follow")
		}
		pass(time.Minute)
		k.wantRefused(t, "second", "t-3")
		for _, f := range second {
			f.close()
		}
		k.wantNoShares(t)
	})
}

// TestHeldWatchCountsForWhoAskedLast: a view, or a request that waits, holds a watch, and neither is
// a stream of it.
func TestHeldWatchCountsForWhoAskedLast(t *testing.T) {
	inKit(t, 4, func(t *testing.T, k *kit) {
		for i := range 3 {
			w, err := k.registry.OpenFor("a", fmt.Sprint("t-", i))
			if err != nil {
				t.Fatal(err)
			}
			w.enter()
			defer w.release()
		}
		pass(time.Hour)
		k.open(t, "t-0") // a view that connects again
		k.wantRefused(t, "a", "t-3")
		if !k.ask(t, "b", "t-0") || !k.ask(t, "a", "t-3") {
			t.Error("the charge does not pass to another client that asks")
		}
	})
}

// TestWatchesThatAreBeingMadeCount, for the client that has asked for them.
func TestWatchesThatAreBeingMadeCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry()
		defer r.Close()
		gate := make(chan struct{})
		if _, err := r.AddTemplate(TemplateConfig{
			Name: "{x}", Max: 4, Match: func(string) bool { return true },
			Make: func(_, client string) (Config, error) {
				if <-gate; client != "a" {
					t.Errorf("made for %q", client)
				}
				return Config{Source: stream.SourceFunc(stay)}, nil
			},
		}); err != nil {
			t.Fatal(err)
		}
		refused := make(chan error, 10)
		for i := range 10 {
			go func() {
				_, err := r.OpenFor("a", fmt.Sprint("n", i))
				refused <- err
			}()
		}
		synctest.Wait()
		if len(refused) != 7 {
			t.Errorf("%d of 10 are refused", len(refused))
		}
		close(gate)
		synctest.Wait()
	})
}

// TestNothingKeepsAllPlaces has a client do anything at random, also with watches that others have
// opened. Whatever it does, a quarter of the places is free a short time after the others have left.
func TestNothingKeepsAllPlaces(t *testing.T) {
	for seed := range uint64(20) {
		inKit(t, 8, func(t *testing.T, k *kit) {
			random := rand.New(rand.NewPCG(seed, 1))
			name := func() string { return fmt.Sprint("t-", random.IntN(12)) }
			greedy := map[string]following{}
			act := func() {
				at := name()
				if random.IntN(3) == 0 {
					k.registry.OpenFor("greedy", at)
				} else if _, has := greedy[at]; !has {
					if f, ok := k.follow(t, "greedy", at); ok {
						greedy[at] = f
					}
				}
			}
			others := map[string]following{}
			for range 300 {
				act()
				at := name()
				if f, has := others[at]; has {
					f.close()
					delete(others, at)
				} else if f, ok := k.follow(t, fmt.Sprint("other", random.IntN(3)), at); ok {
					others[at] = f
				}
				pass(time.Duration(random.IntN(300)) * time.Millisecond)
			}
			for _, f := range others {
				f.close()
			}
			for range 200 {
				act()
				pass(2 * settle / 200)
			}
			if len(greedy) > k.template.MaxPerClient() {
				t.Errorf("seed %d: %d watches are followed", seed, len(greedy))
			}
			for i := range 2 {
				if _, err := k.registry.OpenFor("other", fmt.Sprint("t-new", i)); err != nil {
					t.Errorf("seed %d, place %d: %v", seed, i, err)
				}
			}
			for _, f := range greedy {
				f.close()
			}
			k.wantNoShares(t)
		})
	}
}
