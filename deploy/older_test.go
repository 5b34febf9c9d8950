//go:build servers

package deploy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

var older = flag.String("older", "", "run an upgrade and a downgrade with this program of an older build, and older clients")

// TestOlderBuild upgrades three replicas of an older build one by one, and downgrades them again, under clients and following
// gateways of both builds. Nothing may be lost at any step, and all are exact afterwards.
func TestOlderBuild(t *testing.T) {
	if *older == "" {
		t.Skip("-args -older PATH names the program of an older build")
	}
	for _, u := range upstreams[:2] {
		t.Run(u.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			m := newMixed(ctx, t, u)
			t.Cleanup(cancel) // before what newMixed waits for
			for _, step := range []struct{ name, to string }{{"upgrade", m.now}, {"downgrade", *older}} {
				for i := range 4 { // a client remembers for some minutes that digests were refused
					m.follow(ctx, fmt.Sprintf("client %d, from before the %s", i, step.name), m.address())
				}
				m.expectExact("before the " + step.name)
				for i := range m.replicas {
					m.replace(i, step.to)
					m.expectExact(fmt.Sprintf("%s of replica %d", step.name, i))
				}
				t.Logf("%s: %s", step.name, m.figures())
			}
		})
	}
}

// mixed is three replicas, of which each is of one of two builds, and what follows them. Each follower has an address of its own, as
// a load balancer gives it one.
type mixed struct {
	t        *testing.T
	now      string // the program of this build
	origin   *truth
	replicas []*replica
	programs []string // a link to the program of each

	addresses []*realserver.Proxy
	states    map[string]func() map[string]string // of what follows, by its name
	native    []*counting
	asked     asking
}

// asking counts requests of clients that know digests: streams that a gateway of the older build refuses, and those that are open.
type asking struct{ refused, digested, plain atomic.Int64 }

// RoundTrip implements http.RoundTripper.
func (a *asking) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/events") {
		return response, err
	}
	switch digested := r.URL.Query().Has("digest"); {
	case response.StatusCode == http.StatusBadRequest && digested:
		a.refused.Add(1)
	case response.StatusCode == http.StatusOK && digested:
		a.digested.Add(1)
	case response.StatusCode == http.StatusOK:
		a.plain.Add(1)
	}
	return response, nil
}

func newMixed(ctx context.Context, t *testing.T, u upstream) *mixed {
	now, err := program()
	if err != nil {
		t.Fatal(err)
	}
	old, err := filepath.Abs(*older)
	if err != nil {
		t.Fatal(err)
	}
	*older = old
	m := &mixed{t: t, now: now, origin: &truth{origin: u.start(t), values: map[string]string{}}, states: map[string]func() map[string]string{}}
	sources := m.origin.sources(t)
	for range 3 {
		r, link := m.start(sources, old)
		m.replicas, m.programs = append(m.replicas, r), append(m.programs, link)
	}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	for build, path := range map[string]string{"older": old, "this": now} {
		follower, _ := m.start(following(m.address()), path)
		m.follow(ctx, "a client behind a gateway of the "+build+" build", "http://"+follower.address)
		m.watch(ctx, &running, "watchtide watch of the "+build+" build", path, m.address())
	}
	for range 4 {
		c := &counting{base: newTransport()}
		m.native = append(m.native, c)
		url := m.address() + "/v1/events?watch=services"
		running.Go(func() {
			if err := c.follow(ctx, url); err != nil {
				t.Errorf("a native client gave up: %v", err)
			}
		})
	}
	var changed atomic.Int64
	quiet := m.origin.changeAny(200, 50, &changed)
	t.Cleanup(quiet)
	return m
}

// start starts a gateway by a link to a program, which may be exchanged while it is stopped.
func (m *mixed) start(sources, path string) (r *replica, link string) {
	m.t.Helper()
	link = filepath.Join(m.t.TempDir(), "watchtide")
	m.link(link, path)
	r = newReplicaAs(m.t, sources, timesOf(time.Second).section(), func(_, file string) realserver.Command {
		return realserver.Command{Path: link, Args: []string{"serve", "--config", file}}
	})
	return r, link
}

func (m *mixed) link(link, path string) {
	m.t.Helper()
	os.Remove(link)
	if err := os.Symlink(path, link); err != nil {
		m.t.Fatal(err)
	}
}

// address returns a URL that leads to any of the replicas.
func (m *mixed) address() string {
	p := realserver.NewProxy(m.t, m.replicas[rand.IntN(len(m.replicas))].address)
	m.addresses = append(m.addresses, p)
	return "http://" + p.Addr()
}

// replace stops a replica, and starts it with another program. Its clients are led to the others, and then all to any.
func (m *mixed) replace(i int, path string) {
	m.t.Helper()
	m.lead(func() int { return (i + 1 + rand.IntN(2)) % 3 })
	m.replicas[i].stop()
	m.link(m.programs[i], path)
	m.replicas[i].start()
	m.lead(func() int { return rand.IntN(3) })
	for n, p := range m.addresses {
		if n%2 == 0 {
			p.Cut()
		}
	}
}

func (m *mixed) lead(to func() int) {
	for _, p := range m.addresses {
		p.SetTarget(m.replicas[to()].address)
	}
}

// follow follows with a client of this build.
func (m *mixed) follow(ctx context.Context, name, url string) {
	m.t.Helper()
	server, err := client.New(url, client.Options{Transport: &m.asked})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { server.Close() })
	copied := client.ReplicaOf[json.RawMessage](ctx, server, "services")
	m.t.Cleanup(copied.Close)
	m.states[name] = func() map[string]string {
		if err := copied.Err(); err != nil {
			m.t.Errorf("%s gave up: %v", name, err)
		}
		held := map[string]string{}
		for key, value := range copied.All() {
			held[key] = string(value)
		}
		return held
	}
}

// watch follows with the command of a build.
func (m *mixed) watch(ctx context.Context, running *sync.WaitGroup, name, path, url string) {
	m.t.Helper()
	ctx, end := context.WithCancel(ctx)
	command := exec.CommandContext(ctx, path, "watch", "services", "--server", url)
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(end)
	var mu sync.Mutex
	held := map[string]string{}
	running.Go(func() {
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e struct {
				Type, Key string
				Value     json.RawMessage
			}
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				m.t.Errorf("%s printed %q: %v", name, lines.Bytes(), err)
				continue
			}
			mu.Lock()
			switch e.Type {
			case "reset":
				clear(held)
			case "upsert":
				held[e.Key] = string(e.Value)
			case "delete":
				delete(held, e.Key)
			}
			mu.Unlock()
		}
		if err := command.Wait(); ctx.Err() == nil {
			m.t.Errorf("%s ended: %v", name, err)
		}
	})
	m.states[name] = func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(held)
	}
}

// expectExact stops the changes until all that follow have what the upstream has.
func (m *mixed) expectExact(when string) {
	m.t.Helper()
	m.origin.mu.Lock() // no change
	defer m.origin.mu.Unlock()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for name, state := range m.states {
		for ; !maps.Equal(state(), m.origin.values); <-tick.C {
			if m.t.Failed() || time.Now().After(deadline) {
				m.t.Fatalf("%s: %s has %d resources, and the upstream %d, or their values differ", when, name, len(state()), len(m.origin.values))
			}
		}
	}
	for _, c := range m.native {
		for ; !c.caughtUp(); <-tick.C {
			if time.Now().After(deadline) {
				m.t.Fatalf("%s: a native client has not caught up", when)
			}
		}
	}
}

func (m *mixed) figures() string {
	var all resent
	for _, c := range m.native {
		one := c.take()
		all.bytes, all.resets = all.bytes+one.bytes, all.resets+one.resets
	}
	refused, digested, plain := m.asked.refused.Swap(0), m.asked.digested.Swap(0), m.asked.plain.Swap(0)
	if refused == 0 || digested == 0 || plain < refused {
		m.t.Errorf("%d streams that ask for digests were refused, %d were not, and %d did not ask: they never met both builds", refused, digested, plain)
	}
	return fmt.Sprintf("%d native clients were sent %d resets; %d streams with digests, %d refused, %d without", len(m.native), all.resets, digested, refused, plain)
}
