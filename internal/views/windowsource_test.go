package views

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestDeclaredWindow: a watch that is a window of another one has its rows, with the revisions of their changes, and
// goes on after a lost connection.
func TestDeclaredWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`, `c={"n":3}`, `d={"n":4}`)
		declared, err := f.registry.Add(watch.Config{
			Name: "top", Source: f.views.WindowSource("w", func() (*watch.Watch, error) { return f.base, nil }, ordered(t, "-n", 2, 0)),
			Backoff: watch.Backoff{Min: time.Second, Max: time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s := &subscriber{Subscription: declared.Subscribe(log.SubscribeOptions{})}
		defer s.Close()
		wantLines(t, "the snapshot", s.lines(), "reset initial", `d={"n":4}@2`, `c={"n":3}@2`, "end@2")
		f.commit(`a={"n":9}`)
		wantLines(t, "one enters", s.lines(), "-c@3", `a={"n":9}@3`)
		f.commit(`a=`)
		wantLines(t, "one comes back", s.lines(), "-a@4", `c={"n":3}@4`)
		f.commit(`b={"n":0}`)
		wantLines(t, "nothing changes", s.lines())
		f.commit(`c={"n":5}`, `x={"n":4.5}`)
		wantLines(t, "two change", s.lines(), "-d@6", `c={"n":5}@6`, `x={"n":4.5}@6`)
		f.endpoint.Disconnect(nil)
		f.write(`d={"n":7}`)
		time.Sleep(10 * time.Second)
		f.endpoint.Catch(-1)
		synctest.Wait()
		time.Sleep(10 * time.Second)
		got := s.lines()
		if snapshot := declared.Snapshot(); snapshot.Revision() != 7 || snapshot.Count() != 2 {
			t.Errorf("after an outage at %d with %d resources, want 7 and 2: %q", snapshot.Revision(), snapshot.Count(), got)
		}
		if r, ok := declared.Snapshot().Get("d"); !ok || r.Revision != 7 {
			t.Errorf("after an outage it has %+v", r)
		}
	})
}
