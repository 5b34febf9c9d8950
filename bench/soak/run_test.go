//go:build servers

package soak

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// run is one soak. Owned by the test's goroutine, except for what guards itself.
type run struct {
	// Static after construction.
	t           *testing.T
	plan        plan
	gateway     *gateway
	collections []*collection
	totals      *totals

	before, after  sample // without subscribers
	filled         int64  // changes before the subscribers came
	samples        []sample
	began, stopped time.Time
	attendance     attendance // the crowd's, at the end
	siege          *siege     // the outcomes of the attacks
}

// newRun starts everything but the subscribers.
func newRun(t *testing.T, p plan) *run {
	t.Helper()
	store, etcd := serveStore(t, "services"), serveEtcd(t)
	store.proxy = realserver.NewProxy(t, store.address())
	keys := realserver.NewProxy(t, etcd.address())
	r := &run{t: t, plan: p, totals: newTotals(), gateway: startGateway(t, store.proxy.Addr(), keys.Addr())}
	r.collections = []*collection{
		{watch: "services", upstream: store, proxy: store.proxy, largest: 1, rate: p.rate / 5},
		{watch: "settings", upstream: etcd, proxy: keys, largest: 9, rate: p.rate - p.rate/5},
	}
	if err := r.gateway.fortify(); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.collections {
		c.state, c.said = map[string]bool{}, newFreshness()
		now, err := r.gateway.condition(c.watch)
		if err == nil {
			err = c.begin(t.Context(), now.Epoch)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// settle measures the gateway before any subscriber connects, while the upstreams
// change.
func (r *run) settle() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	writers := r.write(ctx)
	for _, c := range r.collections {
		r.totals.fail(c.fill())
	}
	r.before = r.rest(func(sample) bool { return true })
	cancel()
	writers.Wait()
	r.filled = r.changes()
}

// changes is the number of changes at all upstreams.
func (r *run) changes() (n int64) {
	for _, c := range r.collections {
		n += c.changes.Load()
	}
	return n
}

// write starts the writers.
func (r *run) write(ctx context.Context) *sync.WaitGroup {
	var writers sync.WaitGroup
	for _, c := range r.collections {
		writers.Go(func() { r.totals.fail(c.run(ctx)) })
	}
	return &writers
}

// rest waits until all subscribers have disconnected and the gateway has cleaned
// up, and measures. In a long run it also waits for two collections, which take a
// while, since the measuring itself makes hardly any garbage.
func (r *run) rest(done func(sample) bool) sample {
	r.t.Helper()
	first := r.look()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	const collections = "go_gc_duration_seconds_count"
	for deadline := time.Now().Add(patience); ; <-ticker.C {
		s := r.look()
		collected := r.plan.duration < long || s.metrics[collections] >= first.metrics[collections]+2
		if collected && s.subscribers == 0 && done(s) || time.Now().After(deadline) {
			return s
		}
	}
}

func (r *run) look() sample {
	r.t.Helper()
	s, err := r.gateway.sample()
	if err != nil {
		r.t.Fatalf("the gateway cannot be measured: %v\nits log:\n%s", err, r.gateway.Output())
	}
	return s
}

// live lets all subscribers connect and disconnect, and everything fail, for
// the whole duration. Then the faults end first, the writers next, and the
// subscribers reach the final state of the upstreams.
func (r *run) live() {
	r.t.Helper()
	writing, stopWriting := context.WithCancel(r.t.Context())
	defer stopWriting()
	failing, stopFailing := context.WithTimeout(writing, r.plan.duration)
	defer stopFailing()
	r.began = time.Now()
	writers := r.write(writing)
	crowd := gather(r.t, r.order())
	subscribers, stopped := r.invite(writing), make(chan struct{})
	r.siege = r.besiege(failing)
	go r.watchOver(failing, crowd, stopped)
	var faults sync.WaitGroup
	for _, c := range r.collections {
		faults.Go(func() { r.totals.fail(r.suffer(failing, c)) })
	}
	<-failing.Done()
	r.siege.attackers.Wait()
	<-stopped
	faults.Wait()
	r.stopped = time.Now()
	stopWriting()
	writers.Wait()
	r.arrive(subscribers)
	r.attendance = *crowd.last.Load()
	r.totals.fail(crowd.leave())
}

// scale is that of all times of subscribers: a short run has short ones.
func (r *run) scale() float64 { return min(1, r.plan.duration.Seconds()/60) }

func (r *run) order() order {
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * r.scale()) }
	return order{
		Address: r.gateway.http, Members: r.plan.crowd,
		Stay: scaled(60 * time.Second), Away: scaled(3 * time.Second), Stall: scaled(25 * time.Second),
	}
}

// sampledSubscribers are the sampled subscribers.
type sampledSubscribers struct {
	all     []*subscriber
	running sync.WaitGroup
}

// invite starts the sampled subscribers.
func (r *run) invite(ctx context.Context) *sampledSubscribers {
	g := &sampledSubscribers{}
	for i := range r.plan.sampled {
		s := r.subscriber(i)
		g.all = append(g.all, s)
		g.running.Go(func() { s.live(ctx) })
	}
	return g
}

// subscriber is the i-th: of one watch, of the other, or of both.
func (r *run) subscriber(i int) *subscriber {
	s := &subscriber{
		run: r, name: fmt.Sprintf("subscriber %d", i), scale: r.scale(),
		ndjson: i%5 == 4, gzip: i%4 == 3,
	}
	of := [][]*collection{r.collections[:1], r.collections[1:], r.collections}[i%3]
	for _, c := range of {
		s.tracks = append(s.tracks, &track{of: c, client: s.name, part: partOf(i), held: streamtest.State{}})
	}
	return s
}

// arrive lets the sampled subscribers connect a last time.
func (r *run) arrive(g *sampledSubscribers) {
	r.t.Helper()
	g.running.Wait()
	for _, c := range r.collections {
		r.totals.fail(c.checkFinal(r.t.Context()))
	}
	var arriving sync.WaitGroup
	for _, s := range g.all {
		arriving.Go(func() { r.totals.fail(s.converge(r.t.Context())) })
	}
	arriving.Wait()
}

// check runs all checkers on a connection.
func (r *run) check(t *track, c *streamtest.Connection, settled bool) {
	resets(c, r.totals.reset)
	r.totals.checked.Add(1)
	if err := t.check(c, settled); err != nil {
		r.totals.fail(fmt.Errorf("of %s: %w; it ended %s:\n%s", t.of.watch, err, c.Read.UTC().Format("15:04:05.000"), ends(c.Describe())))
	}
}

// watchOver measures the gateway repeatedly until ctx ends, and reports the progress.
func (r *run) watchOver(ctx context.Context, c *crowd, stopped chan<- struct{}) {
	defer close(stopped)
	look := time.NewTicker(min(2*time.Second, r.plan.duration/10))
	defer look.Stop()
	tell := time.NewTicker(r.plan.progress)
	defer tell.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			s, err := r.gateway.sample()
			if err != nil {
				r.totals.fail(err)
				return
			}
			r.samples = append(r.samples, s)
		case <-tell.C:
			if r.plan.duration >= long && len(r.samples) > 0 {
				fmt.Fprintln(os.Stderr, r.progress(c))
			}
		}
	}
}

// end measures the remaining resources, and ends the gateway.
func (r *run) end() {
	r.t.Helper()
	r.after = r.rest(func(s sample) bool { return len(kept(r.before, s)) == 0 })
	for _, what := range kept(r.before, r.after) {
		r.t.Errorf("not released: %s", what)
	}
	if r.plan.duration >= long {
		for _, what := range grown(r.samples[len(r.samples)/4:]) {
			r.t.Errorf("not flat: %s", what)
		}
	}
	r.totals.fail(r.gateway.stop())
	if err := r.totals.err(); err != nil {
		r.t.Error(err)
	}
	if idle := r.siege.idle(r.plan.attackers); len(idle) > 0 {
		r.t.Errorf("these attacks had no outcome: %v", idle)
	}
	if r.totals.checked.Load() == 0 || r.totals.struck() == 0 {
		r.t.Error("no connection was checked, or nothing failed: the run shows nothing")
	}
}
