package files

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestUnusableDirectory: Watch immediately reports the problem and the name.
func TestUnusableDirectory(t *testing.T) {
	for _, c := range []struct {
		name, want string
		make       func(d disk)
	}{
		{"missing", "there is no directory ", func(d disk) { d.remove("") }},
		{"missing by way of a link", "there is no directory ", func(d disk) {
			d.remove("")
			d.link("nowhere", "")
		}},
		{"a file", " is not a directory", func(d disk) {
			d.remove("")
			d.write("", "x")
		}},
		{"not permitted", "this process may not read the directory ", func(d disk) {
			unprivilegedOnly(d.t)
			d.must(os.Chmod(d.dir, 0))
			d.t.Cleanup(func() { _ = os.Chmod(d.dir, 0o700) })
		}},
		{"not permitted to enter", "this process may not read the directory ", func(d disk) {
			unprivilegedOnly(d.t)
			d.write("a.json", "1")
			d.must(os.Chmod(d.dir, 0o400))
			d.t.Cleanup(func() { _ = os.Chmod(d.dir, 0o700) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(t)
			d.t = t
			c.make(d)
			f := follow(t, d.source(Config{}))
			<-f.ended
			if f.err == nil || !strings.Contains(f.err.Error(), c.want) || !strings.Contains(f.err.Error(), d.dir) {
				t.Errorf("Watch returned %v, want %q and the directory", f.err, c.want)
			}
			if len(f.Commits()) > 0 {
				t.Error("it committed something")
			}
		})
	}
}

// unprivilegedOnly skips tests of permissions, which do not bind root.
func unprivilegedOnly(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
}

func TestUnreadableFiles(t *testing.T) {
	unprivilegedOnly(t)
	d := newDisk(t)
	for _, name := range []string{"a.json", "x/b.json", "c.json"} {
		d.write(name, "1")
	}
	f := follow(t, d.source(Config{}))
	all := map[string]string{"a": "1", "x/b": "1", "c": "1"}
	f.awaitState(all)
	d.must(os.Chmod(d.path("a.json"), 0))
	d.must(os.Chmod(d.path("x"), 0))
	f.awaitWrong("a.json: permission denied", "x: the directory cannot be read: permission denied")
	d.write("c.json", "2")
	all["c"] = "2"
	f.awaitState(all)
	d.must(os.Chmod(d.path("a.json"), 0o600))
	d.must(os.Chmod(d.path("x"), 0o700))
	f.awaitWell()
	d.write("x/b.json", "3")
	all["x/b"] = "3"
	f.awaitState(all)
}

// TestNoHints: without hints of the operating system, the scan finds the
// changes, and the status reports the consequence.
func TestNoHints(t *testing.T) {
	d := newDisk(t)
	d.write("x/a.json", "1")
	s := d.source(Config{})
	s.config.Rescan = 10 * time.Millisecond
	s.open = func() (*fsnotify.Watcher, error) { return nil, errors.New("no such thing") }
	f := follow(t, s)
	f.awaitWrong("changes in 2 directories are seen only every 10ms: the operating system gives no hints: no such thing")
	d.write("x/a.json", "2")
	f.awaitState(map[string]string{"x/a": "2"})
	d.remove("x")
	d.write("y/b.json", "3")
	f.awaitState(map[string]string{"y/b": "3"})
}

// TestHintsThatBreakOff: the goroutine that delivers them is gone.
func TestHintsThatBreakOff(t *testing.T) {
	d := newDisk(t)
	s := d.source(Config{Rescan: -1})
	opened := make(chan *fsnotify.Watcher, 8)
	s.open = func() (*fsnotify.Watcher, error) {
		w, err := openHints()
		opened <- w
		return w, err
	}
	f := follow(t, s)
	f.awaitState(map[string]string{})
	d.must((<-opened).Close())
	<-opened
	d.write("a.json", "1")
	f.awaitState(map[string]string{"a": "1"})
}

// newWatch follows a directory with a registry that retries quickly.
func newWatch(t *testing.T, s stream.Source) *watch.Watch {
	t.Helper()
	r := watch.NewRegistry()
	t.Cleanup(r.Close)
	w, err := r.Add(watch.Config{
		Name: "pages", SourceName: "disk", Source: s,
		Backoff: watch.Backoff{Min: time.Millisecond, Max: 4 * time.Millisecond}, StaleAfter: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// subscriber receives a watch.
type subscriber struct {
	t      *testing.T
	sub    *log.Subscription
	batch  log.Batch
	state  map[string]string
	status stream.Status
	resets int
}

func subscribe(t *testing.T, w *watch.Watch) *subscriber {
	s := &subscriber{t: t, sub: w.Subscribe(log.SubscribeOptions{}), state: map[string]string{}}
	t.Cleanup(s.sub.Close)
	return s
}

// until reads until the state is the wanted one.
func (s *subscriber) until(what string, wanted func() bool) {
	s.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for !wanted() {
		if s.sub.Next(&s.batch) {
			s.take()
			continue
		}
		select {
		case <-s.sub.Changed():
		case <-timeout.C:
			s.t.Fatalf("after %v not %s: %v, %v", patience, what, s.state, s.status)
		}
	}
}

func (s *subscriber) take() {
	for e := range s.batch.Events() {
		switch e.Type {
		case stream.Reset:
			clear(s.state)
			s.resets++
		case stream.Upsert:
			s.state[e.Resource.Key] = string(e.Resource.Value)
		case stream.Delete:
			delete(s.state, e.Resource.Key)
		case stream.StatusChange:
			s.status = stream.Status{State: e.State, Reason: e.Reason}
		}
	}
}

// TestDirectoryGoneAndBack, as subscribers see it: the resources stay, as
// stale, and when the directory is back subscribers get the actual changes.
func TestDirectoryGoneAndBack(t *testing.T) {
	d := newDisk(t)
	d.write("a.json", "1")
	d.write("b.json", "1")
	w := newWatch(t, d.source(Config{}))
	s := subscribe(t, w)
	s.until("the snapshot", func() bool { return len(s.state) == 2 })
	d.rename("", "../away")
	s.until("stale", func() bool {
		return s.status.State == stream.Stale && strings.Contains(w.Status().Full(), "there is no directory "+d.dir)
	})
	if strings.Contains(s.status.Reason, d.dir) {
		t.Errorf("the subscriber got the status %q: want no location of the files", s.status.Reason)
	}
	if len(s.state) != 2 {
		t.Errorf("without the directory the subscriber has %v, want the previous resources", s.state)
	}
	d.write("../next/a.json", "2")
	d.write("../next/b.json", "1")
	d.rename("../next", "")
	s.until("in sync", func() bool { return s.status.State == stream.InSync && s.state["a"] == "2" && s.state["b"] == "1" })
	d.write("b.json", "3") // in the new one
	s.until("the change", func() bool { return s.state["b"] == "3" })
	if s.resets != 1 {
		t.Errorf("%d resets, want that of the beginning alone", s.resets)
	}
}

// TestDirectoryThatIsCreatedLater: missing at the start.
func TestDirectoryThatIsCreatedLater(t *testing.T) {
	d := newDisk(t)
	d.remove("")
	w := newWatch(t, d.source(Config{}))
	s := subscribe(t, w)
	s.until("priming", func() bool { return strings.Contains(w.Status().Full(), "there is no directory") })
	d.write("../next/a.json", "1")
	d.rename("../next", "")
	s.until("in sync", func() bool { return s.state["a"] == "1" && w.Status().State == stream.InSync })
}

// TestMistakeAsSubscribersSeeIt: a parse error reaches the status.
func TestMistakeAsSubscribersSeeIt(t *testing.T) {
	d := newDisk(t)
	d.write("a.json", "1")
	w := newWatch(t, d.source(Config{}))
	s := subscribe(t, w)
	s.until("the snapshot", func() bool { return len(s.state) == 1 })
	d.write("a.json", "{")
	s.until("stale", func() bool { return s.status.State == stream.Stale })
	if want := "the upstream says: a.json:1:2: not JSON: unexpected end of JSON input"; w.Status().Detail != want {
		t.Errorf("operators got the status %q, want %q", w.Status().Detail, want)
	}
	if want := "the upstream says that it is stale"; s.status.Reason != want {
		t.Errorf("the subscriber got the status %q, want %q", s.status.Reason, want)
	}
	d.write("a.json", "2")
	s.until("in sync", func() bool { return s.status.State == stream.InSync })
	if s.state["a"] != "2" {
		t.Errorf("in sync with %v, want the new value: it comes before", s.state)
	}
}
