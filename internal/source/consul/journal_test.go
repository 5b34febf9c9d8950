package consul

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/journal"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// journaled runs a source with a journal in a folder, as a process does, until a function returns.
func journaled(t *testing.T, dir string, c Config, test func(w *watch.Watch)) {
	t.Helper()
	source, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(journal.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	registry := watch.NewRegistry()
	defer registry.Close()
	w, err := registry.Add(watch.Config{Name: "w", SourceName: "consul", Source: source, Journal: j.Watch("w", "consul")})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	if now := w.Status(); now.State != stream.InSync {
		t.Fatalf("the watch is %s: %s", now.State, now.Full())
	}
	test(w)
}

func resumed(w *watch.Watch, position stream.Position) log.ResumeOutcome {
	s := w.Subscribe(log.SubscribeOptions{Resume: &position})
	defer s.Close()
	s.Next(&log.Batch{})
	return s.Outcome()
}

// TestEpochOfResourcesGoesOn: a process that begins at an epoch that the one before has named goes on in it.
func TestEpochOfResourcesGoesOn(t *testing.T) {
	f := emptied()
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		first := watch()
		<-first.ended
		second := watch()
		second.want(t, "an empty one", "reset =0")
		if f.at = second.epoch[0]; first.epoch[0] == f.at {
			t.Errorf("the epoch is still %s", f.at)
		}
	})
	next := &fake{at: f.at, watch: speaks("."), list: always("c@3")}
	bubble(t, next, Config{}, func(t *testing.T, watch func() *running) {
		r := watch()
		r.want(t, "the next process", "reset +c@3 =3")
		if r.epoch[0] != f.at {
			t.Errorf("the epoch is %s, want %s", r.epoch[0], f.at)
		}
	})
}

// TestJournalAfterARestore: a process has noticed a restore, and has begun a new epoch. The next process goes on in
// that epoch: positions from after the restore are exact, and those from before it are of another epoch.
func TestJournalAfterARestore(t *testing.T) {
	health := func(index uint64, status string) page {
		return page{index: index, body: `[{"Node":{"Node":"n1","Address":"10.0.0.1"},"Service":{"ID":"web-1","Service":"web","Port":80},` +
			`"Checks":[{"CheckID":"web","Name":"HTTP","Status":"` + status + `","ServiceID":"web-1"}]}]`}
	}
	for collection, said := range map[string][3]page{
		KV:     {keys(9, "a@5#1=1 b@9#2=x"), keys(4, "a@4#1=0"), keys(20, "a@4#1=0 b@20#20=y")},
		Health: {health(9, "passing"), health(4, "critical"), health(20, "warning")},
	} {
		t.Run(collection, func(t *testing.T) {
			dir, f := t.TempDir(), newFakeHTTP()
			synctest.Test(t, func(t *testing.T) {
				f.changed = make(chan struct{}) // of this bubble
				network := make(memoryNet)
				server := &http.Server{Handler: f}
				var serving sync.WaitGroup
				serving.Go(func() { _ = server.Serve(network.listener()) })
				defer serving.Wait()
				defer server.Close()
				c := Config{HTTPAddress: "consul.test:8500", Resources: Resources{Collection: collection}, network: network.dial}
				if collection == KV {
					c.Prefix = "app/"
				} else {
					c.Service = "web"
				}
				f.said = said[0]
				var before, after stream.Position
				var epoch string
				journaled(t, dir, c, func(w *watch.Watch) {
					before = w.Snapshot().Position()
					f.say(said[1])
					time.Sleep(time.Minute)
					after, epoch = w.Snapshot().Position(), w.Snapshot().Epoch()
					if before.Epoch == after.Epoch {
						t.Fatalf("the epoch is %s as before the restore", epoch)
					}
				})
				f.say(said[2])
				for range 2 {
					journaled(t, dir, c, func(w *watch.Watch) {
						if got := w.Snapshot().Epoch(); got != epoch {
							t.Errorf("the next process is in epoch %s, want %s", got, epoch)
						}
						if got := resumed(w, after); got != log.OutcomeExact {
							t.Errorf("a position from after the restore is %s", got)
						}
						before.Run = 0 // it may be that of another replica
						if got := resumed(w, before); got == log.OutcomeExact {
							t.Errorf("a position from before the restore is %s", got)
						}
					})
				}
			})
		})
	}
}
