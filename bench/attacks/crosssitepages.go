package main

import (
	"context"
	"errors"
	"strconv"
	"time"
)

var crossSitePages = attack{
	name:  "cross-site-pages",
	title: "a page of another site, in a browser on the gateway's machine, asks its listener for operators for profiles, traces, collections and subscribers",
	run:   runCrossSitePages,
}

// forOperators are paths of what is made for operators.
var forOperators = []string{
	"/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=1", "/debug/pprof/heap?gc=1", "/debug/pprof/heap?seconds=1",
	"/debug/pprof/goroutine?debug=2", "/metrics", "/v1/subscribers", "/v1/topology",
}

func runCrossSitePages(ctx context.Context, r *rig) error {
	t, err := r.start(ctx, listeners+"sources: { a: { type: store } }\nwatches: { notes: { source: a } }\n", nil)
	if err != nil {
		return err
	}
	for _, page := range [][2]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example.com"}, {"Origin", "null"},
	} {
		served := 0
		asking := t.operator().with(page[0], page[1])
		for _, path := range forOperators {
			if statusOf(ctx, asking, path) != "403" {
				served++
			}
		}
		r.report(page[0]+": "+page[1]+": answers other than 403", "0", served == 0, "%d of %d", served, len(forOperators))
	}
	for _, kind := range []string{"profile", "trace"} {
		r.equal("a "+kind+" of 100,000 s, of nobody's page", "400", statusOf(ctx, t.operator(), "/debug/pprof/"+kind+"?seconds=100000"))
	}
	r.equal("an operator's own /metrics", "200", statusOf(ctx, t.operator(), "/metrics"))
	return nil
}

// statusOf returns the status of an answer, or says that there was none for some seconds.
func statusOf(ctx context.Context, c *client, path string) string {
	ctx, cancel := context.WithTimeout(ctx, 2500*time.Millisecond)
	defer cancel()
	a, err := c.get(ctx, path)
	switch {
	case err == nil:
		return strconv.Itoa(a.status)
	case errors.Is(err, context.DeadlineExceeded):
		return "still being made"
	}
	return err.Error()
}
