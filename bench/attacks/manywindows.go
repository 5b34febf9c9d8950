package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
)

var manyWindows = attack{
	name:  "many-windows",
	title: "one principal lists as many different windows of one order as it can, and follows 20; others follow a view of the same watch",
	run:   runManyWindows,
}

func runManyWindows(ctx context.Context, r *rig) error {
	t, err := r.start(ctx, movesConfiguration, nil)
	if err != nil {
		return err
	}
	ann, bob := t.as("ann", "127.0.0.77"), t.as("bob", "127.0.0.5")
	if err := putRows(ctx, bob); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	var late lateness
	defer late.follow(following, bob, "/v1/watches/rows/events?prefix=now&filter=value.n%3E%3D0")()
	for i := range 20 {
		defer ann.follow(following, fmt.Sprintf("/v1/watches/rows/events?order=n&limit=100&offset=%d", i), func(string) {})()
	}
	defer stop()
	if err := process.Sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	alone, err := lateBy(ctx, bob, &late, 5*time.Second)
	if err != nil {
		return err
	}
	attacking, end := context.WithCancel(ctx)
	defer end()
	var lists sync.WaitGroup
	var next, listed atomic.Int64
	for range 8 {
		lists.Go(func() {
			for attacking.Err() == nil {
				n := next.Add(1)
				a, err := ann.get(attacking, fmt.Sprintf("/v1/watches/rows/resources?order=n&limit=%d&offset=%d", 1+n%1000, n%1900))
				if err == nil && a.status == http.StatusOK {
					listed.Add(1)
				}
			}
		})
	}
	attacked, err := lateBy(ctx, bob, &late, 10*time.Second)
	if err != nil {
		return err
	}
	end()
	lists.Wait()
	if err := process.Sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	views, err := t.Metric(ctx, "watchtide_views")
	if err != nil {
		return err
	}
	const margin = 300 * time.Millisecond // of a busy machine
	r.atMost(fmt.Sprintf("95 %% of the changes of a view of somebody else are late by, while %d windows are listed", listed.Load()), attacked, alone+margin)
	r.report("views 2 s later: 20 windows that are followed, 16 that are not, an order and a view", "≤ 38", views <= 38, "%.0f", views)
	return nil
}
