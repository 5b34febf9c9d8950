package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
)

var regexStarvesViews = attack{
	name:  "regex-starves-views",
	title: "one principal opens three streams, each with a filter that takes very long for one of a few large values; others open views of this watch and of another one",
	run:   runRegexStarvesViews,
}

const regexConfiguration = listeners + accounts + `
sources: { a: { type: store, max_bytes: 256MiB } }
watches:
  big: { source: a, allow: [ { role: anyone, read: "true", write: "true" } ] }
  small: { source: a, allow: [ { role: staff, read: "true", write: "true" }, { role: anyone, read: 'value.owner == principal.name', write: "true" } ] }
`

// costlyPattern takes hundreds of instructions for each byte.
const costlyPattern = `value.s.matches('[ab]*a[ab]{450}z')`

// comparisons is a filter of very many comparisons of a large list.
var comparisons = strings.Repeat("value.l != value.m || ", 85) + "false"

func runRegexStarvesViews(ctx context.Context, r *rig) error {
	for _, filter := range []struct{ name, text string }{{"a regular expression", costlyPattern}, {"comparisons of lists", comparisons}} {
		if err := starve(ctx, r, filter.name, filter.text); err != nil {
			return err
		}
	}
	return nil
}

func starve(ctx context.Context, r *rig, name, filter string) error {
	t, err := r.start(ctx, regexConfiguration, nil)
	if err != nil {
		return err
	}
	writer, ann, bob := t.as("writer", "127.0.0.4"), t.as("ann", "127.0.0.66"), t.as("bob", "127.0.0.5")
	list := numbers(60_000)
	for i := range 8 {
		value := fmt.Sprintf(`{"i":%d,"s":%q,"l":%s,"m":%s}`, i, strings.Repeat("a", 200_000), list, list)
		if err := writer.put(ctx, "big", fmt.Sprint("k", i), value); err != nil {
			return err
		}
	}
	if err := writer.put(ctx, "small", "s", `{"owner":"bob"}`); err != nil {
		return err
	}
	before, err := t.CPU()
	if err != nil {
		return err
	}
	one, err := ann.get(ctx, "/v1/watches/big/resources/k0?filter="+url.QueryEscape(filter))
	if err != nil {
		return err
	}
	after, err := t.CPU()
	if err != nil {
		return err
	}
	r.report(name+": the processor time of a filter for one value", "a refusal, or ≤ 1s", one.status == http.StatusBadRequest || after-before <= time.Second, "%d, %v", one.status, after-before)

	var late lateness
	following, stop := context.WithCancel(ctx)
	defer late.follow(following, bob, "/v1/watches/big/events?fields=t")()
	defer stop()
	alone, err := others(ctx, writer, bob, &late, 3*time.Second, "alone")
	if err != nil {
		return err
	}
	attacking, stopAttack := context.WithCancel(ctx)
	defer stopAttack()
	for i := range 3 {
		f := fmt.Sprintf("%s && revision != %d", "("+filter+")", 1_000_000_000+i)
		ann.follow(attacking, "/v1/watches/big/events?filter="+url.QueryEscape(f), func(string) {})
	}
	if err := process.Sleep(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	attacked, err := others(ctx, writer, bob, &late, 10*time.Second, "attacked")
	if err != nil {
		return err
	}
	const margin = 500 * time.Millisecond // of a busy machine
	r.atMost(name+": a new view of another watch", attacked.other, alone.other+margin)
	r.atMost(name+": a new view of the same watch", attacked.same, alone.same+margin)
	r.atMost(name+": a stream of the same watch is late by", attacked.late, alone.late+margin)
	r.report(name+": refusals of others", "0", attacked.refused == 0, "%d of %d", attacked.refused, attacked.asked)
	stopAttack()
	began := time.Now()
	if _, err := others(ctx, writer, bob, &late, time.Millisecond, "after"); err != nil {
		return err
	}
	r.atMost(name+": a new view once the attacker has left", time.Since(began), 2*time.Second)
	return nil
}

func numbers(n int) string {
	out := []byte{'['}
	for i := range n {
		out = append(strconv.AppendInt(out, int64(i), 10), ',')
	}
	return string(append(out, "0]"...))
}

// seen is what clients other than the attacker see.
type seen struct {
	other, same, late time.Duration // at worst
	asked, refused    int
}

// others opens new views of both watches, and changes one of them, for a while.
func others(ctx context.Context, writer, bob *client, late *lateness, lasts time.Duration, label string) (s seen, err error) {
	late.take()
	for k, began := 0, time.Now(); k == 0 || time.Since(began) < lasts; k++ {
		if err := writer.put(ctx, "big", "tick", fmt.Sprintf(`{"t":%d}`, time.Now().UnixNano())); err != nil {
			return s, err
		}
		for _, ask := range []struct {
			path  string
			worst *time.Duration
		}{{"small/resources?fields=owner,x", &s.other}, {"big/resources?prefix=ti&fields=t,x", &s.same}} {
			a, err := bob.get(ctx, "/v1/watches/"+ask.path+label+strconv.Itoa(k))
			if err != nil {
				return s, err
			}
			s.asked++
			*ask.worst = max(*ask.worst, a.took)
			if a.status != http.StatusOK {
				s.refused++
			}
		}
		if err := process.Sleep(ctx, 300*time.Millisecond); err != nil {
			return s, err
		}
	}
	s.late = quantile(late.take(), 1)
	return s, nil
}
