package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// cost is what something that needs no view costs a gateway, in microseconds of processor
// time; one figure for each round.
type cost struct{ list, poll, stream []float64 }

// inPlain measures what needs no view: of this gateway, and of an older one if there is
// one, alternately.
func (b *bench) inPlain(ctx context.Context) error {
	var now, before cost
	for range b.plan.rounds {
		if b.before != "" {
			if err := b.plain(ctx, b.before, &before); err != nil {
				return fmt.Errorf("with %s: %w", b.before, err)
			}
		}
		if err := b.plain(ctx, b.program, &now); err != nil {
			return err
		}
	}
	for _, line := range []struct {
		what, format string
		now, before  []float64
	}{
		{"CPU of a list of 1,000 resources", "%.0f µs", now.list, before.list},
		{"CPU of a long poll that a commit answers, the commit included", "%.0f µs", now.poll, before.poll},
		{fmt.Sprintf("CPU per event of a stream, %d subscribers", b.plan.streams), "%.2f µs", now.stream, before.stream},
	} {
		if b.before == "" {
			b.Add(line.what, line.format, median(line.now))
			continue
		}
		n, o := median(line.now), median(line.before)
		b.Judge(line.what, "unchanged (≤ 1.1 ×)", n/o <= 1.1, "%.2f × ("+line.format+", before "+line.format+")", n/o, n, o)
	}
	return nil
}

// plain is one round with one gateway.
func (b *bench) plain(ctx context.Context, program string, c *cost) error {
	g, err := startGateway(ctx, program, b.dir, b.plan, settings{}, data{resources: 1000, groups: 10})
	if err != nil {
		return err
	}
	defer g.stop()
	return b.load(ctx, g, func(r *rig) error {
		if err := r.lists(ctx, &c.list); err != nil {
			return err
		}
		if err := r.polls(ctx, &c.poll); err != nil {
			return err
		}
		if err := r.subscribe(ctx, b.plan.streams, events(many)); err != nil {
			return err
		}
		used, got, err := r.commits(ctx, b.plan.events, b.plan.streams, 50*time.Millisecond, func(i int) int { return i % 1000 })
		c.stream = append(c.stream, micro(used)/float64(got))
		return err
	})
}

func (r *rig) lists(ctx context.Context, to *[]float64) error {
	used, err := r.used(func() error {
		for range r.plan.lists {
			if _, err := r.Get(ctx, r.HTTP, "/v1/watches/"+many+"/resources"); err != nil {
				return err
			}
		}
		return nil
	})
	*to = append(*to, micro(used)/float64(r.plan.lists))
	return err
}

// polls commits changes at a fixed rate, and polls for them.
func (r *rig) polls(ctx context.Context, to *[]float64) error {
	const interval = 5 * time.Millisecond
	after, err := r.poll(ctx, "")
	if err != nil {
		return err
	}
	answers := 0
	used, err := r.used(func() error {
		ended := make(chan error, 1)
		go func() { ended <- r.publish(ctx, r.plan.polls, interval, func(i int) int { return i % 1000 }) }()
		for {
			select {
			case err := <-ended:
				return err
			default:
			}
			if after, err = r.poll(ctx, after); err != nil {
				<-ended
				return err
			}
			answers++
		}
	})
	*to = append(*to, micro(used)/float64(max(1, answers)))
	return err
}

// poll returns the position of an answer.
func (r *rig) poll(ctx context.Context, after string) (position string, err error) {
	text, err := r.Get(ctx, r.HTTP, "/v1/watches/"+many+"/changes?wait=1s&after="+url.QueryEscape(after))
	if err != nil {
		return "", err
	}
	var answer struct{ Position string }
	if err := json.Unmarshal(text, &answer); err != nil {
		return "", err
	}
	return answer.Position, nil
}
