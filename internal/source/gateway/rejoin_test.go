package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// A repeated request continues at the position of the previous one, whatever
// that one had begun.
func TestRequestIsRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		id            string
		calls         string
	}{
		"in a snapshot": {
			before: reset("w@e-0/9") + upsert("x", 1, "1", "w@e-1/9") + upsert("y", 2, "1", ""),
			id:     "w@e-1/9",
			after:  remove("x", 10, "") + upsert("y", 2, "1", "") + upsert("z", 10, "1", "") + event("end_of_snapshot", `,"revision":"10","count":2,"resumed":true`, "w@e-10"),
			calls:  "reset e\nupsert \"x\" 1 1\ndelete \"x\" 10\nupsert \"y\" 2 1\nupsert \"z\" 10 1\ncommit 10",
		},
		"in a snapshot that is not continued": {
			before: reset("w@e-0/9") + upsert("x", 1, "1", "w@e-1/9"),
			id:     "w@e-1/9",
			after:  primed()[len(hello):],
			calls:  "reset e\nupsert \"x\" 1 1\n" + primedCalls[:len(primedCalls)-1],
		},
		"in a transaction": {
			before: primed()[len(hello):] + upsert("x", 3, "1", ""),
			id:     "w@e-2",
			after:  upsert("x", 3, "1", "") + upsert("y", 3, "1", "") + event("end_of_snapshot", `,"revision":"3","count":2,"resumed":true`, "w@e-3"),
			calls:  primedCalls + "upsert \"x\" 3 1\nupsert \"y\" 3 1\ncommit 3\nstatus in_sync ",
		},
		"in a transaction, to a replica that is behind": {
			before: primed()[len(hello):] + upsert("x", 3, "1", ""),
			id:     "w@e-2",
			after:  event("end_of_snapshot", `,"revision":"2","count":2,"resumed":true`, "w@e-2"),
			calls:  primedCalls + "commit 2\nstatus in_sync ",
		},
		"in a transaction, to a replica that begins again": {
			before: primed()[len(hello):] + upsert("x", 3, "1", ""),
			id:     "w@e-2",
			after:  primed()[len(hello):],
			calls:  primedCalls + primedCalls[:len(primedCalls)-1],
		},
		"in a snapshot, behind its first position": {
			before: reset("w@e-0/9") + upsert("x", 1, "1", ""),
			id:     "w@e-0/9",
			after:  upsert("x", 1, "1", "") + event("end_of_snapshot", `,"revision":"9","count":1,"resumed":true`, "w@e-9"),
			calls:  "reset e\nupsert \"x\" 1 1\ncommit 9",
		},
		"in a catch-up, behind a position": {
			before: primed()[len(hello):] + status("catching_up", "slow", "") + remove("x", 8, "w@e-2/9") + upsert("a", 5, "1", ""),
			id:     "w@e-2/9",
			after:  upsert("a", 10, "1", "") + event("end_of_snapshot", `,"revision":"10","count":3,"resumed":true`, "w@e-10"),
			calls:  primedCalls + "delete \"x\" 8\nupsert \"a\" 10 1\ncommit 10\nstatus in_sync ",
		},
		"in a catch-up": {
			before: primed()[len(hello):] + status("catching_up", "slow", "") + remove("x", 8, "w@e-2/9") + upsert("a", 5, "1", "w@e-5/9"),
			id:     "w@e-5/9",
			after:  upsert("b", 9, "1", "") + event("end_of_snapshot", `,"revision":"9","count":3,"resumed":true`, "w@e-9"),
			calls:  primedCalls + "delete \"x\" 8\nupsert \"a\" 5 1\nupsert \"b\" 9 1\ncommit 9\nstatus in_sync ",
		},
		"while the upstream is stale": {
			before: primed()[len(hello):] + status("stale", "lost", ""),
			id:     "w@e-2",
			after:  event("end_of_snapshot", `,"revision":"2","count":2,"resumed":true`, "w@e-2"),
			calls:  primedCalls + "status stale lost\ncommit 2\nstatus in_sync ",
		},
		"while the upstream is stale, and stays so": {
			before: primed()[len(hello):] + status("stale", "lost", ""),
			id:     "w@e-2",
			after:  status("stale", "lost", "") + event("end_of_snapshot", `,"revision":"2","count":2,"resumed":true`, "w@e-2"),
			calls:  primedCalls + "status stale lost\nstatus stale lost\ncommit 2",
		},
		"before any event": {
			after: primed()[len(hello):],
			calls: primedCalls[:len(primedCalls)-1],
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, u, stop := serve(t, Config{}, stalls(hello, c.before), stalls(hello, c.after))
				defer stop()
				w, late := sourceOf(t, u, "w"), sourceOf(t, u, "late")
				sink := &calls{}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 2)
				go func() { ended <- w.Watch(ctx, stream.Resume{}, sink) }()
				time.Sleep(time.Second)
				go func() { ended <- late.Watch(ctx, stream.Resume{}, &calls{}) }()
				time.Sleep(time.Second)
				if sink.String() != c.calls {
					t.Errorf("calls\n%s\nwant\n%s", sink, c.calls)
				}
				if ids := f.ids(); len(ids) != 2 || ids[1] != c.id {
					t.Errorf("positions %q, want a second request from %q", ids, c.id)
				}
				cancel()
				<-ended
				<-ended
			})
		})
	}
}

// bare is a Sink that cannot go back.
type bare struct{ stream.Sink }

func (bare) Mark()         {}
func (bare) Rewind() error { return stream.PlainSink{}.Rewind() }

// A sink that cannot discard half a transaction does not get the rest from
// another request.
func TestSinkThatCannotRewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, u, stop := serve(t, Config{}, stalls(primed(), upsert("x", 3, "1", "")), stalls(hello))
		defer stop()
		w, late := sourceOf(t, u, "w"), sourceOf(t, u, "late")
		sink := &calls{}
		ended, lateEnded := make(chan error, 1), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- w.Watch(ctx, stream.Resume{}, bare{sink}) }()
		time.Sleep(time.Second)
		go func() { lateEnded <- late.Watch(ctx, stream.Resume{}, &calls{}) }()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "cannot forget it") {
			t.Errorf("Watch returned %v", err)
		}
		if want := primedCalls + "upsert \"x\" 3 1"; sink.String() != want {
			t.Errorf("calls\n%s\nwant\n%s", sink, want)
		}
		cancel()
		<-lateEnded
	})
}

// A server that reports again and again that some watch was removed, without
// naming it, is not called in a tight loop.
func TestRemovedAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, u, stop := serve(t, Config{}, replies(hello, goodbye("watch_removed", 0)))
		defer stop()
		a, b := sourceOf(t, u, "a"), sourceOf(t, u, "b")
		ended := make(chan error, 2)
		go func() { ended <- a.Watch(t.Context(), stream.Resume{}, &calls{}) }()
		go func() { ended <- b.Watch(t.Context(), stream.Resume{}, &calls{}) }()
		for range 2 {
			if err := <-ended; err == nil {
				t.Error("no error")
			}
		}
		if got := len(f.ids()); got != 2 {
			t.Errorf("%d requests, want 2", got)
		}
	})
}

// Watches that lose their upstream together reconnect together, in one request.
func TestWatchesReconnectTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10
		var snapshots, bookmarks string
		for i := range n {
			name := fmt.Sprint("w", i)
			snapshots += snapshotOf(name)
			bookmarks += eventOf(name, "end_of_snapshot", `,"revision":"2","count":1,"resumed":true`, name+"@e-2")
		}
		f, u, stop := serve(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
			write(w, hello, snapshots)
			time.Sleep(time.Minute)
			panic(http.ErrAbortHandler)
		}, stalls(hello, bookmarks))
		defer stop()
		registry := watch.NewRegistry()
		defer registry.Close()
		var watches []*watch.Watch
		for i := range n {
			name := fmt.Sprint("w", i)
			s, err := u.Source(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			w, err := registry.Add(watch.Config{Name: name, Source: s})
			if err != nil {
				t.Fatal(err)
			}
			watches = append(watches, w)
			synctest.Wait() // it has joined, and another one is to come
		}
		time.Sleep(time.Second)
		if got := len(f.ids()); got != 1 {
			t.Errorf("%d requests at first, want 1", got)
		}
		time.Sleep(time.Minute)
		// The back-off spreads them over 50 to 100 ms, which is as long as a request
		// waits; one or two may come late.
		if got := len(f.ids()); got > 3 {
			t.Errorf("%d requests, want 2 or 3", got)
		}
		for _, w := range watches {
			if w.Status().State != stream.InSync {
				t.Errorf("watch %s: %v", w.Name(), w.Status())
			}
		}
	})
}

// A watch that is stopped during an event is not at fault, and shares its
// request again.
func TestStoppedWatchIsNotFaulty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, u, stop := serve(t, Config{}, stalls(primed()))
		defer stop()
		for _, stopped := range []bool{true, false} {
			ctx, cancel := context.WithCancel(t.Context())
			s := sourceOf(t, u, "w")
			_ = s.Watch(ctx, stream.Resume{}, &calls{on: func(string) error {
				if stopped {
					cancel()
				}
				return context.Canceled
			}})
			cancel()
			if s.faulty == stopped {
				t.Errorf("stopped %t: faulty %t", stopped, s.faulty)
			}
		}
	})
}
