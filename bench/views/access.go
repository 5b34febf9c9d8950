package main

import (
	"context"
	"errors"
	"fmt"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/watchtide/watchtide/bench/internal/process"
)

// roles is how many roles the subscribers have between them.
const roles = 5

// inRoles compares the views of a few roles with the watch itself, of a gateway without access
// rules. Both gateways run at the same time, with as many subscribers, and take turns: every
// commit concerns all subscribers of one of them.
func (b *bench) inRoles(ctx context.Context) error {
	users, err := newPrincipals(b.dir, b.plan.subscribers, roles)
	if err != nil {
		return err
	}
	d := data{resources: 1000, groups: 10}
	return b.withSettings(ctx, settings{}, d, func(plain *rig) error {
		if err := plain.subscribe(ctx, b.plan.subscribers, events(many)); err != nil {
			return err
		}
		parts := users.settings(func(role int) string { return fmt.Sprintf(`value.n > %d && value.team == "t3"`, role) })
		return b.withSettings(ctx, parts, d, func(ruled *rig) error {
			if err := ruled.subscribeEach(ctx, users.subscriptions()); err != nil {
				return err
			}
			return b.compareRoles(ctx, plain, ruled)
		})
	})
}

// compareRoles has the gateways take turns.
func (b *bench) compareRoles(ctx context.Context, plain, ruled *rig) error {
	const parts = 4 // of a round
	if err := process.Sleep(ctx, b.plan.settle); err != nil {
		return err
	}
	var without, with []float64
	for range b.plan.rounds * parts {
		for _, c := range []struct {
			name string
			of   *rig
			to   *[]float64
		}{{"roles-none", plain, &without}, {"roles", ruled, &with}} {
			each, err := c.of.perEvent(ctx, c.name, max(1, b.plan.shared/parts))
			if err != nil {
				return err
			}
			*c.to = append(*c.to, each)
		}
	}
	views, err := ruled.Metric(ctx, "watchtide_views")
	if err != nil {
		return err
	}
	p, v := median(without), median(with)
	b.Judge(fmt.Sprintf("CPU per event, %d subscribers with tokens and %d roles, against the watch without access rules", b.plan.subscribers, roles),
		"≤ 1.1 ×, 5 views", v/p <= 1.1 && views == roles, "%.2f × (%.2f and %.2f µs), %.0f views", v/p, v, p, views)
	return nil
}

// inCredentials measures what requests with credentials cost more than those without. The kinds
// of requests take turns of a few hundred, so that all see the same machine.
func (b *bench) inCredentials(ctx context.Context) error {
	users, err := newPrincipals(b.dir, 1, 1)
	if err != nil {
		return err
	}
	var none, static, seen, first, bare []float64 // microseconds; but for none, more than none
	err = b.withSettings(ctx, users.settings(func(int) string { return "true" }), data{resources: 10, groups: 1}, func(r *rig) error {
		known, err := users.jwts(1)
		if err != nil {
			return err
		}
		for turn := range b.plan.turnsOfRequests {
			tokens, err := users.jwts(b.plan.requests)
			if err != nil {
				return err
			}
			c, err := r.credentials(ctx, turn, users, known[0], tokens)
			if err != nil {
				return err
			}
			if turn == 0 {
				continue // it warms up
			}
			none, bare = append(none, c.none), append(bare, c.bare)
			static, seen, first = append(static, c.static-c.none), append(seen, c.seen-c.none), append(first, c.first-c.none)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.Add("CPU of a list of ten resources without a credential", "%.1f µs", median(none))
	b.Judge("the same with a static token, more than without", "≤ 10 µs", median(static) <= 10, "%.1f µs", median(static))
	b.Judge("the same with a JWT that was seen before", "≤ 10 µs", median(seen) <= 10, "%.1f µs", median(seen))
	ratio := median(first) / median(bare)
	b.Judge("the same with a new ES256 token, against its bare verification with go-jose", "≤ 1.3 ×", ratio <= 1.3,
		"%.2f × (%.1f and %.1f µs)", ratio, median(first), median(bare))
	return nil
}

// credentialCosts are the processor times of a request with each kind of credential, and of
// the bare verification of a token, in microseconds.
type credentialCosts struct{ none, static, seen, first, bare float64 }

// credentials measures a turn. What comes first is another one in each. The bare verification
// is what this process needs more for requests if it verifies a token after each: so it is
// surrounded by the same as in the gateway.
func (r *rig) credentials(ctx context.Context, turn int, users *principals, known string, tokens []string) (c credentialCosts, err error) {
	var client, verifying float64 // of this process
	kinds := []struct {
		gateway, own *float64
		request      func(i int) error
	}{
		{&c.none, &client, func(int) error { return r.listAs(ctx, "") }},
		{&c.static, new(float64), func(int) error { return r.listAs(ctx, users.tokens[0]) }},
		{&c.seen, new(float64), func(int) error { return r.listAs(ctx, known) }},
		{&c.first, new(float64), func(i int) error { return r.listAs(ctx, tokens[i]) }},
		{new(float64), &verifying, func(i int) error { return errors.Join(r.listAs(ctx, ""), users.verify(tokens[i])) }},
	}
	for i := range kinds {
		k := kinds[(turn+i)%len(kinds)]
		if *k.gateway, *k.own, err = r.each(len(tokens), k.request); err != nil {
			return c, err
		}
	}
	c.bare = verifying - client
	return c, nil
}

// each makes requests, and returns the processor time for one, in microseconds: that of the
// gateway, and that of this process.
func (r *rig) each(n int, request func(i int) error) (gateway, own float64, err error) {
	before, err := process.CPU()
	if err != nil {
		return 0, 0, err
	}
	used, err := r.used(func() error {
		for i := range n {
			if err := request(i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	after, err := process.CPU()
	return micro(used) / float64(n), micro(after-before) / float64(n), err
}

// listAs asks for a list with a token.
func (r *rig) listAs(ctx context.Context, token string) error {
	_, err := r.GetAs(ctx, token, r.HTTP, "/v1/watches/"+few+"/resources")
	return err
}

// verify verifies the signature of a token.
func (p *principals) verify(token string) error {
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return err
	}
	_, err = signed.Verify(p.key.Public())
	return err
}
