//go:build servers

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// fault is a fault of an upstream. It returns when the upstream is reachable
// again.
type fault struct {
	name   string
	happen func(ctx context.Context, d time.Duration) error
	wipes  bool // the upstream starts another revision order
}

// faults are all faults of a collection.
func (c *collection) faults() []fault {
	p := c.proxy
	held := func(begin func()) func(context.Context, time.Duration) error {
		return func(ctx context.Context, d time.Duration) error {
			begin()
			wait(ctx, d)
			p.Heal()
			return nil
		}
	}
	atOnce := func(do func() error) func(context.Context, time.Duration) error {
		return func(context.Context, time.Duration) error { return do() }
	}
	all := []fault{
		{name: "cut", happen: atOnce(func() error { p.Cut(); return nil })},
		{name: "cut and refused", happen: held(func() { p.Refuse(); p.Cut() })},
		{name: "stall", happen: held(p.Stall)},
		{name: "delay", happen: held(func() { p.Delay(150 * time.Millisecond) })},
		{name: "trickle", happen: held(func() { p.Trickle(6 << 10) })},
		{name: "half-close to the gateway", happen: atOnce(func() error { p.HalfClose(realserver.Client); return nil })},
		{name: "restart", happen: atOnce(c.upstream.restart)},
		{name: "wipe", happen: atOnce(c.upstream.wipe), wipes: true},
	}
	if e, ok := c.upstream.(*etcdUpstream); ok {
		all = append(all,
			fault{name: "compaction while cut off", happen: func(ctx context.Context, d time.Duration) error {
				p.Refuse()
				p.Cut()
				wait(ctx, d)
				defer p.Heal()
				return e.compact()
			}})
	}
	return all
}

// suffer applies one fault after the other to a collection until ctx ends, all of
// them before any is repeated. The current one is finished: the upstream is
// healthy, and the watch in sync.
func (r *run) suffer(ctx context.Context, c *collection) error {
	for {
		all := slices.DeleteFunc(c.faults(), func(f fault) bool { return *onlyFault != "" && f.name != *onlyFault })
		for _, i := range rand.Perm(len(all)) {
			wait(ctx, r.plan.between/2+rand.N(r.plan.between))
			if ctx.Err() != nil {
				return nil
			}
			if err := r.strike(ctx, c, all[i]); err != nil {
				return fmt.Errorf("%s, %s: %w", c.watch, all[i].name, err)
			}
		}
	}
}

// strike applies one fault, and waits until it is over and the watch has recovered.
func (r *run) strike(ctx context.Context, c *collection, f fault) error {
	began := time.Now()
	if err := r.happen(ctx, c, f); err != nil {
		return err
	}
	over := time.Now()
	c.noted()
	_, newest := c.truth.Newest()
	if _, err := r.awaitSync(c, func(now condition) bool { return now.Revision > newest.Revision }); err != nil {
		return err
	}
	r.totals.fault(c.watch+": "+f.name, over.Sub(began), time.Since(over))
	return nil
}

// happen blocks writes while their outcome would be unknown, and, if the upstream
// starts another order, until its name is known.
func (r *run) happen(ctx context.Context, c *collection, f fault) error {
	d := rand.N(min(4*time.Second, r.plan.between))
	switch {
	case f.wipes:
		c.mu.Lock()
		defer c.mu.Unlock()
		return r.wipe(ctx, c, f, d)
	case f.name == "restart":
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	return f.happen(ctx, d)
}

// wipe is called with c.mu held.
func (r *run) wipe(ctx context.Context, c *collection, f fault, d time.Duration) error {
	before, err := r.gateway.condition(c.watch)
	if err != nil {
		return err
	}
	if err := f.happen(ctx, d); err != nil {
		return err
	}
	after, err := r.awaitSync(c, func(now condition) bool { return now.Epoch != before.Epoch })
	if err != nil {
		return err
	}
	return c.begin(context.Background(), after.Epoch)
}

// awaitSync waits until the watch is in sync again.
func (r *run) awaitSync(c *collection, so func(condition) bool) (now condition, err error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); ; <-ticker.C {
		now, err = r.gateway.condition(c.watch)
		if err == nil && now.State == "in_sync" && so(now) {
			return now, nil
		}
		if time.Now().After(deadline) {
			return now, fmt.Errorf("the watch has not recovered within %v: it is %+v (%v)", patience, now, err)
		}
	}
}
