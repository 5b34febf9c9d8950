package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var logoutsPushOut = attack{
	name:  "logouts-push-out",
	title: "somebody has a copy of the cookie of a session that has ended; two accounts end sessions of their own, some tens of thousands of them, until that one is forgotten",
	run:   runLogoutsPushOut,
}

var logoutsConfiguration = listeners + strings.Replace(accounts, "DIR/tokens", "DIR/tokens, limits: { requests_per_second: 1000000 }", 1) + `
sources: { a: { type: store } }
watches: { notes: { source: a, allow: [ { role: anyone, read: 'principal.name == "ann"', write: "true" } ] } }
`

func runLogoutsPushOut(ctx context.Context, r *rig) error {
	t, err := r.start(ctx, logoutsConfiguration, nil)
	if err != nil {
		return err
	}
	const list = "/v1/watches/notes/resources"
	ann, err := t.as("ann", "127.0.0.4").session(ctx)
	if err != nil {
		return err
	}
	other, err := t.as("ann", "127.0.0.5").session(ctx)
	if err != nil {
		return err
	}
	thief := t.as("", "127.0.0.66").with("Cookie", ann.header.Get("Cookie"))
	r.equal("the copied cookie before the session ends", "200", statusOf(ctx, thief, list))
	if a, err := ann.ask(ctx, http.MethodDelete, "/v1/session", ""); err != nil || a.status != http.StatusNoContent {
		return fmt.Errorf("DELETE /v1/session: %d, %w", a.status, err)
	}
	r.equal("the copied cookie after it", "401", statusOf(ctx, thief, list))
	before, err := t.Metric(ctx, "process_resident_memory_bytes")
	if err != nil {
		return err
	}
	began := time.Now()
	n, err := logouts(ctx, t, 55_000, 18*time.Second)
	if err != nil {
		return err
	}
	after, err := t.Metric(ctx, "process_resident_memory_bytes")
	if err != nil {
		return err
	}
	r.report("logouts of the two accounts", "≥ 10000", n >= 10_000, "%d in %v", n, time.Since(began).Round(time.Second))
	r.equal("the copied cookie after them", "401", statusOf(ctx, t.as("", "127.0.0.67").with("Cookie", ann.header.Get("Cookie")), list))
	r.equal("another session of the same principal", "200", statusOf(ctx, other, list))
	r.report("resident memory grows by", "≤ 100 MiB", after-before <= 100<<20, "%.0f MiB", (after-before)/(1<<20))
	return nil
}

// logouts ends up to most sessions of bob and root. A login as one with the cookie of the
// other ends the session of the other.
func logouts(ctx context.Context, t *target, most int64, lasts time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var n atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, 4)
	for range cap(errs) {
		all.Go(func() {
			if err := logoutsAlone(ctx, t, most, &n); err != nil && ctx.Err() == nil {
				errs <- err
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return n.Load(), nil
	}
}

// logoutsAlone is logouts over one connection. It writes requests by hand, since http.Client
// takes longer for one than the gateway.
func logoutsAlone(ctx context.Context, t *target, most int64, n *atomic.Int64) error {
	connection, err := net.Dial("tcp", t.HTTP)
	if err != nil {
		return err
	}
	defer connection.Close()
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	defer stop()
	accounts := []string{token("bob"), token("root")}
	answers := bufio.NewReader(connection)
	cookie := "none=1"
	for k := 0; n.Load() < most; k++ {
		fmt.Fprintf(connection, "POST /v1/session HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nCookie: %s\r\nContent-Length: 0\r\n\r\n", t.HTTP, accounts[k%2], cookie)
		status, err := answers.ReadString('\n')
		if err != nil {
			return err
		}
		if !strings.Contains(status, " 204 ") {
			return fmt.Errorf("POST /v1/session: %s", status)
		}
		header, err := textproto.NewReader(answers).ReadMIMEHeader()
		if err != nil {
			return err
		}
		cookie, _, _ = strings.Cut(header.Get("Set-Cookie"), ";")
		n.Add(1)
	}
	return nil
}
