package main

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/watchtide/watchtide/bench/load"
)

// roles is how many roles the subscribers have between them.
const roles = 5

// inRoles compares the views of a few roles with the watch itself, of a gateway without access
// rules. Each has the same subscribers, alternately, and every commit concerns all of them.
func (b *bench) inRoles(ctx context.Context) error {
	users, err := newPrincipals(b.dir, b.plan.subscribers, roles)
	if err != nil {
		return err
	}
	whole := func() ([]load.Request, settings) { return repeated(b.plan.subscribers, events(many)), settings{} }
	parts := func() ([]load.Request, settings) {
		return users.subscriptions(), users.settings(func(role int) string { return fmt.Sprintf(`value.n > %d && value.team == "t3"`, role) })
	}
	var ruled, plain []float64
	views := 0.0
	for range b.plan.rounds {
		for _, c := range []struct {
			name string
			to   *[]float64
			of   func() ([]load.Request, settings)
		}{{"roles-none", &plain, whole}, {"roles", &ruled, parts}} {
			subscriptions, s := c.of()
			err := b.withSettings(ctx, s, data{resources: 1000, groups: 10}, func(r *rig) error {
				if err := r.subscribeEach(ctx, subscriptions); err != nil {
					return err
				}
				each, err := r.perEvent(ctx, c.name)
				if err != nil {
					return err
				}
				*c.to = append(*c.to, each)
				views, err = r.Metric(ctx, "watchtide_views")
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	p, v := median(plain), median(ruled)
	b.Judge(fmt.Sprintf("CPU per event, %d subscribers with tokens and %d roles, against the watch without access rules", b.plan.subscribers, roles),
		"≤ 1.1 ×, 5 views", v/p <= 1.1 && views == roles, "%.2f × (%.2f and %.2f µs), %.0f views", v/p, v, p, views)
	return nil
}

// inCredentials measures what requests with credentials cost more than those without.
func (b *bench) inCredentials(ctx context.Context) error {
	users, err := newPrincipals(b.dir, 1, 1)
	if err != nil {
		return err
	}
	n := b.plan.requests
	fresh := make([]string, b.plan.rounds*n/10)
	for i := range fresh {
		if fresh[i], err = users.jwt(i); err != nil {
			return err
		}
	}
	used := fresh
	kinds := []credentialKind{
		{name: "none", token: func() string { return "" }},
		{name: "static", token: func() string { return users.tokens[0] }},
		{name: "seen", token: func() string { return used[0] }},
		{name: "fresh", token: func() string { defer func() { fresh = fresh[1:] }(); return fresh[0] }, each: 10},
	}
	err = b.withSettings(ctx, users.settings(func(int) string { return "true" }), data{resources: 10, groups: 1}, func(r *rig) error {
		warm := kinds[0]
		if err := r.requests(ctx, &warm, n); err != nil {
			return err
		}
		for range b.plan.rounds {
			for i := range kinds {
				if err := r.requests(ctx, &kinds[i], n); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	bare, err := users.verification(used)
	if err != nil {
		return err
	}
	none, static, seen, first := median(kinds[0].costs), median(kinds[1].costs), median(kinds[2].costs), median(kinds[3].costs)
	b.Add("CPU of a list of ten resources without a credential", "%.1f µs", none)
	b.Judge("the same with a static token, more than without", "≤ 10 µs", static-none <= 10, "%.1f µs", static-none)
	b.Judge("the same with a JWT that was seen before", "≤ 10 µs", seen-none <= 10, "%.1f µs", seen-none)
	b.Judge("the same with a new ES256 token, against its bare verification with go-jose", "≤ 1.3 ×", (first-none)/bare <= 1.3,
		"%.2f × (%.1f and %.1f µs)", (first-none)/bare, first-none, bare)
	return nil
}

// credentialKind is a way to make requests.
type credentialKind struct {
	name  string
	token func() string
	each  int // of so many requests only one is made; 0: all are
	costs []float64
}

// requests measures requests for a list.
func (r *rig) requests(ctx context.Context, k *credentialKind, n int) error {
	n /= max(1, k.each)
	used, err := r.used(func() error {
		for range n {
			if _, err := r.GetAs(ctx, k.token(), r.HTTP, "/v1/watches/"+few+"/resources"); err != nil {
				return fmt.Errorf("credential %s: %w", k.name, err)
			}
		}
		return nil
	})
	k.costs = append(k.costs, micro(used)/float64(n))
	return err
}

// verification is the processor time that the verification of a token's signature takes, in
// microseconds.
func (p *principals) verification(tokens []string) (float64, error) {
	runtime.GC()
	before, err := ownTime()
	if err != nil {
		return 0, err
	}
	for _, token := range tokens {
		signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			return 0, err
		}
		if _, err := signed.Verify(p.key.Public()); err != nil {
			return 0, err
		}
	}
	after, err := ownTime()
	return micro(after-before) / float64(len(tokens)), err
}

// ownTime is the processor time that this process has used.
func ownTime() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}

// repeated returns the same request n times.
func repeated(n int, request load.Request) (requests []load.Request) {
	for range n {
		requests = append(requests, request)
	}
	return requests
}
