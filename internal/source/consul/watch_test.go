package consul

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// watched is a source as it runs in a gateway, with one subscriber whose events
// are all kept.
type watched struct {
	*watch.Watch
	t *testing.T

	mu     sync.Mutex // guards what follows
	state  streamtest.State
	events []stream.Event
}

// follow starts a watch and a subscriber, and waits for the snapshot.
func follow(t *testing.T, s stream.Source) *watched {
	t.Helper()
	registry := watch.NewRegistry()
	watch, err := registry.Add(watch.Config{
		Name: "w", SourceName: "consul", Source: s,
		Backoff: watch.Backoff{Min: 10 * time.Millisecond, Max: 200 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Watch: watch, t: t, state: streamtest.State{}}
	done := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() { w.read(watch.Subscribe(log.SubscribeOptions{}), done) })
	t.Cleanup(func() {
		close(done)
		reading.Wait()
		registry.Close()
	})
	w.eventually("snapshot", func() error {
		if w.count(stream.EndOfSnapshot) == 0 {
			return fmt.Errorf("the status is %v: %s", w.Status().State, w.Status().Full())
		}
		return nil
	})
	return w
}

func (w *watched) read(s *log.Subscription, done chan struct{}) {
	defer s.Close()
	var b log.Batch
	for {
		for s.Next(&b) {
			w.take(&b)
		}
		select {
		case <-s.Changed():
		case <-done:
			return
		}
	}
}

func (w *watched) take(b *log.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e := range b.Events() {
		w.state.Apply(e)
		w.events = append(w.events, e)
	}
}

// count returns the number of events of a type.
func (w *watched) count(of stream.EventType) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Type == of {
			n++
		}
	}
	return n
}

// is waits for a state.
func (w *watched) is(state stream.State) {
	w.t.Helper()
	w.eventually(state.String(), func() error {
		if now := w.Status(); now.State != state {
			return fmt.Errorf("the status is %v: %s", now.State, now.Full())
		}
		return nil
	})
}

func (w *watched) eventually(what string, missing func() error) {
	w.t.Helper()
	eventually(w.t, what, missing)
}

func eventually(t *testing.T, what string, missing func() error) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	const patience = 60 * time.Second
	for began := time.Now(); ; <-ticker.C {
		err := missing()
		if err == nil {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("no %s after %v: %v", what, patience, err)
		}
	}
}
