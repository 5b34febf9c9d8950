package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
)

var endlessLine = attack{
	name:  "endless-line",
	title: "a gateway that is followed sends one line, or one event, without an end",
	run:   runEndlessLine,
}

const endlessConfiguration = listeners + `
stream: { prime_wait: 100ms, stale_allowed: 1s, memory: { total: 64MiB } }
sources: { up: { type: gateway, url: "http://UPSTREAM", retry_max: 100ms } }
watches: { w: { source: up, memory: 64MiB } }
`

// endlessHello is what a gateway says first.
const endlessHello = "retry: 2000\n\nevent: hello\ndata: {\"type\":\"hello\",\"heartbeat_ms\":15000,\"watches\":[{\"watch\":\"w\",\"mode\":\"snapshot\"}]}\n\n" +
	"event: reset\ndata: {\"type\":\"reset\",\"watch\":\"w\",\"reason\":\"initial\"}\nid: w@e-0/2\n\n"

func runEndlessLine(ctx context.Context, r *rig) error {
	for _, begins := range []struct{ what, text string }{
		{"data", "event: upsert\ndata: {\"key\":\"k\",\"value\":\""},
		{"a comment", ": "},
		{"many lines of one event", ""},
		{"an id", "id: "},
	} {
		if err := endless(ctx, r, begins.what, begins.text); err != nil {
			return err
		}
	}
	return nil
}

func endless(ctx context.Context, r *rig, what, begins string) error {
	var sent, asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, endlessHello, begins)
		part := bytes.Repeat([]byte("x"), 64<<10)
		if begins == "" {
			part = bytes.Repeat([]byte("data: x\n"), 8<<10)
		}
		for {
			n, err := w.Write(part)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	t, err := r.start(ctx, strings.ReplaceAll(endlessConfiguration, "UPSTREAM", server.Listener.Addr().String()), nil)
	if err != nil {
		return err
	}
	defer t.Stop()
	if err := process.Sleep(ctx, 2500*time.Millisecond); err != nil {
		return err
	}
	peak, err := process.PeakResident(t.PID())
	if err != nil {
		return err
	}
	// The process needs some 60 MiB without any watch.
	r.report(what+": resident memory under a ceiling of 64 MiB", "≤ 160 MiB", peak <= 160<<20 && asked.Load() > 0, "%d MiB after %d MiB in %d connections", peak>>20, sent.Load()>>20, asked.Load())
	return nil
}
