//go:build servers

package deploy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream/streamtest"
)

// Two replicas behind nginx are restarted, one after the other, under browsers. No
// browser may see an error, and all must be connected and exact afterwards.
func TestRollingRestartBehindNginx(t *testing.T) {
	const clients = 200
	b := newBackend()
	b.commit(streamtest.Write{Key: "first", Value: streamtest.ValueOf(0)})
	replicas := []*replica{newReplica(t, b), newReplica(t, b)}
	c := newCrowd(t, b, startNginx(t, replicas[0].address, replicas[1].address), clients)
	c.awaitAll("connected")

	stopWriting := b.writeMuch()
	for _, r := range replicas {
		r.restart()
		c.awaitAll("connected again")
	}
	stopWriting()
	c.awaitAll("up to date")
	c.stop()

	cuts, connections := 0, 0
	for _, s := range c.sources {
		if diff := s.state.Diff(b.State()); diff != "" {
			t.Errorf("%s holds something else than the upstream: %s", s.name, diff)
		}
		cuts += int(s.cuts.Load())
		connections += s.opened
	}
	if cuts > 0 {
		t.Errorf("%d streams ended without a goodbye", cuts)
	}
	if connections < clients*3/2 {
		t.Errorf("%d clients made %d connections: the restarts did not move them", clients, connections)
	}
	if err := streamtest.CheckAll(c.history); err != nil {
		t.Error(err)
	}
	t.Logf("%d connections of %d clients, up to revision %d", connections, clients, b.Revision())
}

// writeMuch changes the upstream all the time, until the returned function is
// called.
func (b *backend) writeMuch() (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			one, other := rand.IntN(20), 20+rand.IntN(20)
			b.commit(streamtest.Write{Key: fmt.Sprint("k", one), Value: streamtest.ValueOf(n)},
				streamtest.Write{Key: fmt.Sprint("k", other), Value: streamtest.ValueOf(n), Delete: n%3 == 0})
		}
	}()
	return func() {
		close(done)
		<-stopped
	}
}

// crowd is many clients of one address.
type crowd struct {
	t       *testing.T
	backend *backend
	sources []*eventSource
	history *streamtest.History
	stop    func() // ends all clients, and waits for them
}

func newCrowd(t *testing.T, b *backend, address string, n int) *crowd {
	transport := &http.Transport{MaxIdleConnsPerHost: n}
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{t: t, backend: b, history: &streamtest.History{Truth: b.Truth(), Settled: true}}
	var running sync.WaitGroup
	order := new(atomic.Int64)
	for i := range n {
		s := &eventSource{
			name: fmt.Sprint("client ", i), url: "http://" + address + "/v1/events?watch=services",
			client: &http.Client{Transport: transport}, history: c.history, order: order,
		}
		c.sources = append(c.sources, s)
		running.Go(func() { s.run(ctx) })
	}
	c.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		transport.CloseIdleConnections()
	})
	t.Cleanup(c.stop)
	return c
}

// awaitAll waits until every client has what the upstream has now.
func (c *crowd) awaitAll(what string) {
	c.t.Helper()
	goal, timeout := c.backend.Revision(), time.After(patience)
	for {
		behind, lost := 0, []string(nil)
		for _, s := range c.sources {
			if err := s.dead.Load(); err != nil {
				lost = append(lost, fmt.Sprintf("%s: %v", s.name, *err))
			} else if s.asOf.Load() < goal {
				behind++
			}
		}
		switch {
		case len(lost) > 0 && behind == 0:
			c.t.Fatalf("%d of %d clients are lost for good:\n%s", len(lost), len(c.sources), strings.Join(lost[:min(3, len(lost))], "\n"))
		case behind == 0:
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-timeout:
			c.t.Fatalf("%d of %d clients are not %s after %v, %d are lost for good: %v", behind, len(c.sources), what, patience, len(lost), lost)
		}
	}
}
