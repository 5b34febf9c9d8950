//go:build servers

package deploy_test

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/streamtest"
)

// full makes the restarts those of a gateway with its defaults, whose goodbyes take 10 s.
var full = flag.Bool("full", false, "measure with the default times, and compare the gaps")

// clients is how many follow the replicas while these are restarted.
var clients = flag.Int("clients", 200, "restart the replicas behind deploy/'s configurations under so many clients")

// times are those of the replicas.
type times struct{ retry, drain time.Duration }

// section is the configuration of the times.
func (t times) section() string { return fmt.Sprintf("retry: %v, drain: %v", t.retry, t.drain) }

func timesOf(drain time.Duration) times {
	if *full {
		return times{1500 * time.Millisecond, 10 * time.Second} // the defaults
	}
	return times{time.Second, drain}
}

// TestRestartsBehindProxies restarts two replicas under browsers and followers, one after
// the other, and kills one. Nobody may be lost, and all must be up to date and exact
// afterwards.
func TestRestartsBehindProxies(t *testing.T) {
	for _, p := range proxies {
		t.Run(p.program, func(t *testing.T) {
			alongside(t)
			s := newStage(t, p, *clients, timesOf(3*time.Second))
			s.restartAll()
			if cuts := s.crowd.cuts(); cuts > 0 {
				t.Errorf("%d streams ended without a goodbye", cuts)
			}
			restarted := s.crowd.figures()
			t.Logf("%s, rolling restart: %v", p.program, restarted)
			s.kill(s.replicas[0])
			s.end()
			f := s.crowd.figures()
			t.Logf("%s, and kill -9: %v", p.program, f)
			s.crowd.expectFollowers()
			f.check(t, p, restarted)
		})
	}
	for _, p := range plainProxies {
		t.Run("plain "+p.program, func(t *testing.T) {
			alongside(t)
			s := newStage(t, p, 60, timesOf(time.Second))
			for _, r := range s.replicas {
				r.stop()
				r.start()
			}
			s.stopWriting()
			s.crowd.stop() // a plain nginx needs minutes until it serves all of them again
			t.Logf("plain %s, rolling restart: %v", p.program, s.crowd.figures())
			s.crowd.expectFollowers() // browsers are only counted
		})
	}
}

// streamTimeouts are what proxies allow streams as silence, and what a test allows that does not
// measure.
var streamTimeouts = map[string][]string{
	"nginx": {"proxy_read_timeout 18s", "proxy_read_timeout 4s"}, "haproxy": {"set-timeout server 35s", "set-timeout server 7s"},
	"caddy": {"read_timeout 35s", "read_timeout 7s"},
}

// TestPausedReplicaBehindProxies stops a replica with its connections open, as a frozen container
// or a lost network does. Browsers do not notice silence, so the proxy must: all clients move to
// the other replica, and none is silent for more than three heartbeats.
func TestPausedReplicaBehindProxies(t *testing.T) {
	const heartbeat = 15 * time.Second // the default
	for _, p := range proxies {
		t.Run(p.program, func(t *testing.T) {
			alongside(t)
			n := 40
			if *full {
				n = *clients
			} else {
				p.changes = append(p.changes, streamTimeouts[p.program]...)
			}
			s := newStage(t, p, n, timesOf(time.Second))
			s.crowd.longestSilence() // while they came
			s.replicas[0].Pause()
			s.crowd.awaitAll("connected to the other replica")
			silence := s.crowd.longestSilence()
			s.replicas[0].Resume()
			s.end()
			f := s.crowd.figures()
			t.Logf("%s, a paused replica: silent for %.1f s at most, %v", p.program, silence.Seconds(), f)
			s.crowd.expectFollowers()
			if f.dead > 0 {
				t.Errorf("%d clients are lost for good", f.dead)
			}
			if f.gaps == 0 {
				t.Error("no client was at the paused replica")
			}
			if *full && silence > 3*heartbeat {
				t.Errorf("a client heard nothing for %v, want at most three heartbeats", silence)
			}
		})
	}
}

// alongside lets tests run beside each other that measure nothing.
func alongside(t *testing.T) {
	if !*full {
		t.Parallel()
	}
}

// expectFollowers checks that no client of our own has given up.
func (c *crowd) expectFollowers() {
	c.t.Helper()
	for _, f := range c.followers {
		if err := f.dead.Load(); err != nil {
			c.t.Errorf("%s gave up: %v", f.name, *err)
		}
	}
}

// check compares the figures with what docs/behind-a-proxy.md promises.
func (f figures) check(t *testing.T, p proxy, restarted figures) {
	t.Helper()
	snapshots := 0
	if p.program == "nginx" { // it asks no replica whether it is ready
		snapshots = 5
	}
	if f.dead > 0 {
		t.Errorf("%d clients are lost for good", f.dead)
	}
	if restarted.resent > snapshots {
		t.Errorf("%d snapshots were sent again, want at most %d", restarted.resent, snapshots)
	}
	if restarted.gaps < f.clients {
		t.Errorf("%d clients were cut off %d times: the restarts did not move them", f.clients, restarted.gaps)
	}
	if !*full {
		return
	}
	switch {
	case p.program == "nginx" && restarted.p95 > 5*time.Second:
		t.Errorf("the 95th percentile of the gaps is %v, want at most 5s", restarted.p95)
	case p.program != "nginx" && restarted.most > 4*time.Second:
		t.Errorf("the longest gap is %v, want at most 4s", restarted.most)
	}
}

// stage is two replicas of an upstream that changes all the time, behind a proxy, and
// their clients.
type stage struct {
	t           *testing.T
	times       times
	backend     *backend
	replicas    []*replica
	crowd       *crowd
	stopWriting func()
}

func newStage(t *testing.T, p proxy, clients int, times times) *stage {
	t.Helper()
	b := newBackend(t)
	s := &stage{t: t, times: times, backend: b, replicas: []*replica{newReplica(t, following(b.url), times.section()), newReplica(t, following(b.url), times.section())}}
	s.crowd = newCrowd(t, b, p.start(t, s.replicas[0].address, s.replicas[1].address), clients)
	s.crowd.awaitAll("connected")
	s.stopWriting = b.writeMuch()
	t.Cleanup(s.stopWriting)
	return s
}

// restartAll is a rolling restart. If it is measured, each replica is started again at once,
// and else when its clients have found the other one, however long that takes here.
func (s *stage) restartAll() {
	s.t.Helper()
	for _, r := range s.replicas {
		r.stop()
		if !*full {
			s.crowd.awaitAll("connected to the other replica")
		}
		r.start()
		s.crowd.awaitAll("connected again")
	}
}

// kill kills a replica, and starts it again when its clients have found the other one.
func (s *stage) kill(r *replica) {
	s.t.Helper()
	r.Kill()
	s.crowd.awaitAll("connected to the other replica")
	r.start()
	s.crowd.awaitAll("connected again")
}

// end checks that the clients that are left hold what the upstream holds.
func (s *stage) end() {
	s.t.Helper()
	s.stopWriting()
	s.crowd.awaitAll("up to date")
	s.crowd.stop()
	for _, c := range s.crowd.sources {
		if diff := c.state.Diff(s.backend.State()); diff != "" && c.dead.Load() == nil {
			s.t.Errorf("%s holds something else than the upstream: %s", c.name, diff)
		}
	}
	if err := streamtest.CheckAll(s.crowd.history); err != nil {
		s.t.Error(err)
	}
}

// writeMuch makes 20 changes a second, until the returned function is called.
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
	return sync.OnceFunc(func() {
		close(done)
		<-stopped
	})
}

// follower is a client of our own.
type follower struct {
	name string
	tally
}

func (f *follower) run(ctx context.Context, url string) {
	server, err := client.New(url, client.Options{})
	if err == nil {
		defer server.Close()
		err = f.follow(server.Watch(ctx, "services"))
	}
	if ctx.Err() == nil {
		f.dead.Store(&err)
	}
}

func (f *follower) follow(changes iter.Seq2[client.Event, error]) error {
	for e, err := range changes {
		if e.State == client.Offline {
			f.lose(e.Err)
			continue
		}
		if err == nil {
			err = f.receive(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// crowd is many clients of one URL, half of them browsers.
type crowd struct {
	t         *testing.T
	backend   *backend
	sources   []*eventSource
	followers []*follower
	tallies   []*tally // of both
	history   *streamtest.History
	stop      func() // ends all clients, and waits for them
}

func newCrowd(t *testing.T, b *backend, url string, n int) *crowd {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{t: t, backend: b, history: &streamtest.History{Truth: b.Truth(), Settled: true}}
	var running sync.WaitGroup
	order := new(atomic.Int64)
	for i := range n / 2 {
		s := &eventSource{
			name: fmt.Sprint("browser ", i), url: url + "/v1/events?watch=services",
			client: &http.Client{Transport: newTransport()}, history: c.history, order: order,
		}
		f := &follower{name: fmt.Sprint("follower ", i)}
		c.sources, c.followers, c.tallies = append(c.sources, s), append(c.followers, f), append(c.tallies, &s.tally, &f.tally)
		running.Go(func() {
			s.run(ctx)
			s.client.CloseIdleConnections()
		})
		running.Go(func() { f.run(ctx, url) })
	}
	c.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(c.stop)
	return c
}

// newTransport returns a transport with connections of its own, as a browser has them.
func newTransport() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() }

// awaitAll waits until every client that is not lost has got a change that is made now.
func (c *crowd) awaitAll(what string) {
	c.t.Helper()
	c.backend.commit(streamtest.Write{Key: "goal", Value: streamtest.ValueOf(int(c.backend.Revision()))})
	goal, deadline := c.backend.Revision(), time.Now().Add(patience)
	for {
		behind := 0
		for _, one := range c.tallies {
			if one.dead.Load() == nil && one.asOf.Load() < goal {
				behind++
			}
		}
		if behind == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%d of %d clients are not %s after %v", behind, len(c.tallies), what, patience)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-c.t.Context().Done():
			return
		}
	}
}

// cuts is how many streams of browsers ended without a goodbye.
func (c *crowd) cuts() (n int) {
	for _, s := range c.sources {
		n += int(s.cuts.Load())
	}
	return n
}

// longestSilence returns the longest time in which a client that is not lost heard nothing, since the
// last call.
func (c *crowd) longestSilence() (longest time.Duration) {
	for _, one := range c.tallies {
		if silence := one.longestSilence(); one.dead.Load() == nil {
			longest = max(longest, silence)
		}
	}
	return longest
}

// figures are those of all clients together.
type figures struct {
	clients, refused, badGateway, dead, resent, gaps int
	p50, p95, most                                   time.Duration
}

func (c *crowd) figures() figures {
	f := figures{clients: len(c.tallies)}
	var gaps []time.Duration
	for _, one := range c.tallies {
		refused, badGateway := one.refused()
		f.refused += refused
		f.badGateway += badGateway
		if one.dead.Load() != nil {
			f.dead++
		}
		one.mu.Lock()
		f.resent += one.resent
		gaps = append(gaps, one.gaps...)
		one.mu.Unlock()
	}
	slices.Sort(gaps)
	if f.gaps = len(gaps); f.gaps > 0 {
		f.p50, f.p95, f.most = gaps[f.gaps/2], gaps[f.gaps*95/100], gaps[f.gaps-1]
	}
	return f
}

func (f figures) String() string {
	return fmt.Sprintf("%d clients, %d answers of 502, %d other refusals, %d dead, %d snapshots resent, %d gaps p50 %.1f s, p95 %.1f s, max %.1f s",
		f.clients, f.badGateway, f.refused-f.badGateway, f.dead, f.resent, f.gaps, f.p50.Seconds(), f.p95.Seconds(), f.most.Seconds())
}
