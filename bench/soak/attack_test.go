//go:build servers

package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// attack is a way to take more resources of a gateway than a client should get.
// One run uses connections of its own, and records the outcome of each.
type attack struct {
	name string
	do   func(*attacker, context.Context)
}

// attacks are all kinds. Attackers alternate between them.
var attacks = []attack{
	{"a body that trickles in", (*attacker).trickleBodies},
	{"a listing that is read slowly", (*attacker).readListingsSlowly},
	{"a stream that is read slowly", (*attacker).readStreamsSlowly},
	{"a foreign host", (*attacker).nameForeignHosts},
	{"a half-closed connection", (*attacker).halfClose},
	{"prefixes that match nothing", (*attacker).askForNothing},
	{"listings that are aborted", (*attacker).abortListings},
	{"two lengths of one body", (*attacker).sendTwoLengths},
	{"idle connections", (*attacker).stayIdle},
	{"listings into a window of 0", (*attacker).closeWindow},
	{"listings that are reset", (*attacker).resetListings},
	{"gRPC messages that do not arrive", (*attacker).announceMessages},
	{"gRPC lists that are not read", (*attacker).ignoreLists},
	{"silent gRPC connections", (*attacker).stayOpen},
}

// attacker repeats one attack. Owned by its goroutine.
type attacker struct {
	// Static after construction.
	siege   *siege
	attack  attack
	from    string // address of its own, so that per-client limits apply to it alone
	http    string // host:port of the gateway
	grpc    string
	seconds float64 // of an attack
}

// siege has all attackers, and the outcomes of their attacks. Safe for concurrent
// use.
type siege struct {
	attackers sync.WaitGroup

	mu       sync.Mutex
	outcomes map[string]map[string]int // by attack
	health   []time.Duration           // how long each health check took
}

// besiege starts the attackers, and the health checks beside them. They end with ctx.
func (r *run) besiege(ctx context.Context) *siege {
	s := &siege{outcomes: map[string]map[string]int{}}
	for i := range r.plan.attackers {
		a := &attacker{
			siege: s, attack: attacks[i%len(attacks)], from: fmt.Sprintf("127.0.%d.%d", 1+i/250, 1+i%250),
			http: r.gateway.http, grpc: r.gateway.grpc, seconds: 60 * r.scale(),
		}
		s.attackers.Go(func() { a.live(ctx) })
	}
	s.attackers.Go(func() { r.totals.fail(s.checkHealth(ctx, r.gateway)) })
	return s
}

// live attacks until ctx ends.
func (a *attacker) live(ctx context.Context) {
	for ctx.Err() == nil {
		round, end := context.WithTimeout(ctx, a.after(1))
		a.attack.do(a, round)
		end()
		wait(ctx, a.after(0.05))
	}
}

// after is a fraction of the duration of an attack.
func (a *attacker) after(share float64) time.Duration {
	return time.Duration(share * a.seconds * float64(time.Second))
}

// note counts the outcome of one connection, or of one request.
func (a *attacker) note(outcome string) {
	a.siege.mu.Lock()
	defer a.siege.mu.Unlock()
	of := a.siege.outcomes[a.attack.name]
	if of == nil {
		of = map[string]int{}
		a.siege.outcomes[a.attack.name] = of
	}
	of[outcome]++
}

// The possible outcomes of an attack, besides an answer.
const (
	held    = "held until it ended by itself"
	closed  = "closed by the gateway"
	refused = "not connected"
)

// connect connects from the attacker's own address. The connection is closed when
// ctx ends; nil: it could not be made, which is recorded.
func (a *attacker) connect(ctx context.Context, address string) *net.TCPConn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(a.from)}}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) { // that of ctx
			a.note(refused)
		}
		return nil
	}
	context.AfterFunc(ctx, func() { c.Close() })
	return c.(*net.TCPConn)
}

// each runs several connections at the same time.
func (a *attacker) each(ctx context.Context, n int, address string, do func(*net.TCPConn) (outcome string)) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			c := a.connect(ctx, address)
			if c == nil {
				return
			}
			defer c.Close()
			a.note(do(c))
		})
	}
	all.Wait()
}

// often calls do that many times a second until ctx ends.
func (a *attacker) often(ctx context.Context, perSecond int, do func(n int) bool) {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !do(n) {
			return
		}
	}
}

// checkHealth checks the gateway's health ten times a second, like a load
// balancer. It must always get an answer.
func (s *siege) checkHealth(ctx context.Context, g *gateway) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		began := time.Now()
		status, err := g.get("/healthz", drained)
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("a health check under attack: %d, %w", status, err)
		}
		s.mu.Lock()
		s.health = append(s.health, time.Since(began))
		s.mu.Unlock()
	}
}

// idle names the attacks without any outcome, among the first n.
func (s *siege) idle(attackers int) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range attacks[:min(attackers, len(attacks))] {
		if len(s.outcomes[a.name]) == 0 {
			names = append(names, a.name)
		}
	}
	return names
}

// report gives the outcomes of the attacks, in Markdown.
func (s *siege) report(b *strings.Builder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.outcomes) > 0 {
		b.WriteString("\n| attack | outcome of its connections and requests |\n|---|---|\n")
	}
	for _, name := range slices.Sorted(maps.Keys(s.outcomes)) {
		var parts []string
		for _, outcome := range slices.Sorted(maps.Keys(s.outcomes[name])) {
			parts = append(parts, fmt.Sprintf("%s: %d", outcome, s.outcomes[name][outcome]))
		}
		fmt.Fprintf(b, "| %s | %s |\n", name, strings.Join(parts, ", "))
	}
	if n := len(s.health); n > 0 {
		slices.Sort(s.health)
		at := func(share float64) time.Duration {
			return s.health[int(share*float64(n-1))].Round(100 * time.Microsecond)
		}
		fmt.Fprintf(b, "\nHealth checks during the attacks: %d, half of them answered within %v, 99 %% within %v, all within %v.\n", n, at(0.5), at(0.99), at(1))
	}
}
