package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/client"
)

// goWindow is a window that a client of the Go package follows.
type goWindow struct {
	client.Mover
	t       *testing.T
	replica *client.Replica[client.Resource]
	resets  int
	move    uint64 // of which it was told last
}

// follow follows a window in another goroutine, until the test ends.
func (w *goWindow) follow(c *client.Client, v client.View) {
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e, err := range c.Watch(ctx, "late", v, &w.Mover) {
			if err != nil {
				return
			}
			if w.move = max(w.move, e.Move); e.Type == client.Reset {
				w.resets++
			}
			_ = w.replica.Apply(e)
		}
	}()
	w.t.Cleanup(func() { cancel(); <-ended })
}

// astray is a way to two replicas, of which one has no streams.
type astray struct {
	http.RoundTripper
	astray bool // moves get to that one
}

// RoundTrip implements http.RoundTripper.
func (a *astray) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.astray && r.Method == http.MethodPost {
		r = r.Clone(r.Context())
		r.URL.Path = strings.Replace(r.URL.Path, "/v1/streams/", "/v1/streams/X", 1)
	}
	return a.RoundTripper.RoundTrip(r)
}

// expect waits until the client has what there is, and compares it.
func (w *goWindow) expect(what string, resets int, want ...string) {
	w.t.Helper()
	time.Sleep(slack())
	synctest.Wait()
	var got []string
	for _, r := range w.replica.All() {
		got = append(got, string(r.Key))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || w.resets != resets || w.replica.Progress().Pending {
		w.t.Errorf("%s: %q after %d resets, want %q after %d", what, got, w.resets, want, resets)
	}
}

// TestGoClientMoves: a Mover moves the window of an open stream, keeps it when the connection is lost, and begins
// again where the request gets to a replica that does not have the stream.
func TestGoClientMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMoving(t, Config{})
		elsewhere := &astray{RoundTripper: r.client.Transport}
		c, err := client.New("http://gateway", client.Options{Transport: elsewhere})
		if err != nil {
			t.Fatal(err)
		}
		w := &goWindow{t: t, replica: client.NewReplica("late")}
		w.follow(c, client.View{Order: "n", Limit: 2})
		w.expect("the snapshot", 1, "k0", "k1")
		for i, place := range []client.Place{{Offset: 1}, {Offset: 2, Limit: 3}, {Offset: 3}} {
			if err := w.Move(t.Context(), place); err != nil {
				t.Fatal(err)
			}
			time.Sleep(slack())
			synctest.Wait()
			if w.move != uint64(i+1) {
				t.Errorf("the client was told of move %d, want %d", w.move, i+1)
			}
		}
		w.expect("moved", 1, "k3", "k4", "k5")
		if err := w.Move(t.Context(), client.Place{Offset: -1}); err == nil {
			t.Error("an offset below 0 is taken")
		}
		w.expect("after a mistake", 1, "k3", "k4", "k5")
		elsewhere.astray = true
		if err := w.Move(t.Context(), client.Place{Offset: 5}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.expect("at another replica", 2, "k5", "k6", "k7")
	})
}
