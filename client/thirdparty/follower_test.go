//go:build servers

package thirdparty

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// follower is a third-party client that follows one stream through a proxy, and does
// with its events what the protocol asks for: reset clears, upsert puts, delete removes.
type follower struct {
	// Static after construction.
	name  string
	proxy *realserver.Proxy
	ended chan struct{} // closed when the client has returned

	mu      sync.Mutex // guards the following fields
	state   map[string]string
	seen    seen
	gone    error         // why the client returned
	changed chan struct{} // closed and replaced at each event
}

// seen is what a follower was sent.
type seen struct {
	Hellos  []string // the mode of the watch in each
	Resets  int
	Deletes []string
	Ends    int // of snapshots
	Upserts map[string]int
	Broken  []string // data that could not be parsed
}

// newFollower starts a client. The definition of its view is its own, so that each
// client makes a view: the last of the fields exists in no value.
func newFollower(t *testing.T, name string, run follow, gateway *process) *follower {
	t.Helper()
	f := &follower{
		name: name, proxy: realserver.NewProxy(t, gateway.address), ended: make(chan struct{}),
		state: map[string]string{}, seen: seen{Upserts: map[string]int{}}, changed: make(chan struct{}),
	}
	query := url.Values{"filter": {`value.team == "red"`}, "fields": {"team,n," + name}}
	address := fmt.Sprintf("http://%s/v1/watches/orders/events?%s", f.proxy.Addr(), query.Encode())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(f.ended)
		f.end(run(ctx, address, f.receive))
	}()
	t.Cleanup(func() {
		cancel()
		<-f.ended
	})
	return f
}

func (f *follower) end(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = fmt.Errorf("the client gave up: %w", why)
	f.signal()
}

// signal is called with f.mu held.
func (f *follower) signal() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *follower) receive(event, data string) {
	if data == "" {
		return // the field retry is an event for some clients
	}
	var e struct {
		Type, Watch, Key string
		Value            json.RawMessage
		Watches          []struct{ Mode string }
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.signal()
	if err := json.Unmarshal([]byte(data), &e); err != nil || e.Type != event {
		f.seen.Broken = append(f.seen.Broken, fmt.Sprintf("%s: %s", event, data))
		return
	}
	switch event {
	case "hello":
		f.seen.Hellos = append(f.seen.Hellos, e.Watches[0].Mode)
	case "reset":
		f.seen.Resets++
		clear(f.state)
	case "upsert":
		f.seen.Upserts[e.Key]++
		f.state[e.Key] = string(e.Value)
	case "delete":
		f.seen.Deletes = append(f.seen.Deletes, e.Key)
		delete(f.state, e.Key)
	case "end_of_snapshot":
		f.seen.Ends++
	}
}

// await waits until the follower holds exactly this state, after a number of ends of
// snapshots, and returns what it has seen.
func (f *follower) await(t *testing.T, ends int, want map[string]string) seen {
	t.Helper()
	for timeout := time.After(patience); ; {
		f.mu.Lock()
		state, saw, gone, changed := maps.Clone(f.state), f.seen, f.gone, f.changed
		saw.Deletes, saw.Upserts = slices.Clone(saw.Deletes), maps.Clone(saw.Upserts)
		f.mu.Unlock()
		if saw.Ends >= ends && maps.Equal(state, want) {
			return saw
		}
		if gone != nil {
			t.Fatalf("%s: %v; it holds %v, want %v, and has seen %+v", f.name, gone, state, want, saw)
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%s holds %v, want %v; it has seen %+v", f.name, state, want, saw)
		}
	}
}
