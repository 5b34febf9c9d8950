package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
)

var viewDrag = attack{
	name:  "view-drag",
	title: "one principal opens 40 streams, each with another filter that is as costly as is allowed; others follow the same watch and another one",
	run:   runViewDrag,
}

const dragConfiguration = listeners + accounts + `
sources: { a: { type: store, max_bytes: 256MiB, max_value_bytes: 1MiB } }
watches:
  big: { source: a, allow: [ { role: anyone, read: "true", write: "true" } ] }
  small: { source: a, allow: [ { role: anyone, read: "true", write: "true" } ] }
`

// dragged are the streams of clients other than the attacker.
type dragged struct {
	whole, other, cheap lateness // of the same watch, of another one, and of a cheap view of the same
	writer              *client
}

func runViewDrag(ctx context.Context, r *rig) error {
	t, err := r.start(ctx, dragConfiguration, nil)
	if err != nil {
		return err
	}
	ann, bob := t.as("ann", "127.0.0.77"), t.as("bob", "127.0.0.5")
	for i := range 4 {
		if err := bob.put(ctx, "big", fmt.Sprint("k", i), dragValue()); err != nil {
			return err
		}
	}
	d := &dragged{writer: bob}
	following, stop := context.WithCancel(ctx)
	defer d.whole.follow(following, bob, "/v1/watches/big/events")()
	defer d.cheap.follow(following, bob, "/v1/watches/big/events?fields=t")()
	defer d.other.follow(following, bob, "/v1/watches/small/events")()
	defer stop()
	if err := process.Sleep(ctx, time.Second); err != nil {
		return err
	}
	alone, err := d.phase(ctx, 5*time.Second)
	if err != nil {
		return err
	}
	attacking, stopAttack := context.WithCancel(ctx)
	defer stopAttack()
	for i := range 40 {
		f := fmt.Sprintf("%s && key != 'z%d'", draggingFilter(i), i)
		ann.follow(attacking, "/v1/watches/big/events?filter="+url.QueryEscape(f), func(string) {})
	}
	if err := process.Sleep(ctx, 3*time.Second); err != nil {
		return err
	}
	attacked, err := d.phase(ctx, 12*time.Second)
	if err != nil {
		return err
	}
	const margin = 400 * time.Millisecond // of a busy machine
	for i, what := range []string{"the same watch", "another watch"} {
		r.atMost("95 % of the changes of "+what+" are late by", attacked[i], alone[i]+margin)
	}
	r.atMost("95 % of those of a cheap view of the same watch, which may be later than it by a fifth", attacked[2], attacked[0]*6/5+margin/4)
	a, err := bob.get(ctx, "/v1/watches/big/resources?page_size=1&fields=i")
	if err != nil {
		return err
	}
	r.report("a new view of somebody else", "200, ≤ 1s", a.status == http.StatusOK && a.took <= time.Second, "%d, %v", a.status, a.took.Round(time.Millisecond))
	stopAttack()
	return manyViews(ctx, r, t, bob)
}

func dragValue() string {
	return fmt.Sprintf(`{"l":%s,"s":%q,"t":%d}`, numbers(3000), strings.Repeat("a", 300_000), time.Now().UnixNano())
}

func draggingFilter(i int) string {
	switch i % 4 {
	case 0:
		return "value.s.matches('(a|aa)+(b|bb)+$')"
	case 1:
		return "value.s.matches('.*.*.*.*x')"
	case 2:
		return fmt.Sprintf("value.l.exists(a, a == %d.5)", i)
	}
	return "value.s.matches('(a+)+$')"
}

// phase writes to both watches for a while, and returns how late 95 % of the changes are.
func (d *dragged) phase(ctx context.Context, lasts time.Duration) (late [3]time.Duration, err error) {
	all := []*lateness{&d.whole, &d.other, &d.cheap}
	for _, l := range all {
		l.take()
	}
	for began := time.Now(); time.Since(began) < lasts; {
		if err := d.writer.put(ctx, "big", "k0", dragValue()); err != nil {
			return late, err
		}
		if err := d.writer.put(ctx, "small", "k0", fmt.Sprintf(`{"t":%d}`, time.Now().UnixNano())); err != nil {
			return late, err
		}
		if err := process.Sleep(ctx, 300*time.Millisecond); err != nil {
			return late, err
		}
	}
	if err := process.Sleep(ctx, time.Second); err != nil {
		return late, err
	}
	for i, l := range all {
		late[i] = quantile(l.take(), .95)
	}
	return late, nil
}

// manyViews opens very many views of one principal, some of which have long lists of fields.
func manyViews(ctx context.Context, r *rig, t *target, bob *client) error {
	before, err := t.Metric(ctx, "process_resident_memory_bytes")
	if err != nil {
		return err
	}
	ann, n := t.as("ann", "127.0.0.77"), 0
	for began := time.Now(); n < 6000 && time.Since(began) < 16*time.Second; n++ {
		fields := fmt.Sprint("i", n)
		if n%50 == 0 {
			fields = longFields(n)
		}
		if _, err := ann.get(ctx, "/v1/watches/small/resources?fields="+fields); err != nil {
			return err
		}
	}
	a, err := bob.get(ctx, "/v1/watches/small/resources?fields=zz")
	if err != nil {
		return err
	}
	after, err := t.Metric(ctx, "process_resident_memory_bytes")
	if err != nil {
		return err
	}
	r.report(fmt.Sprintf("a view of somebody else after %d views of one principal", n), "200", a.status == http.StatusOK && json.Valid([]byte(a.body)), "%d", a.status)
	r.report("resident memory grows by", "≤ 500 MiB", after-before <= 500<<20, "%.0f MiB", (after-before)/(1<<20))
	return nil
}

func longFields(n int) string {
	var b strings.Builder
	for i := range 64 {
		fmt.Fprintf(&b, ",p%d_%d.a.b.c.d", n, i)
	}
	return b.String()[1:]
}
