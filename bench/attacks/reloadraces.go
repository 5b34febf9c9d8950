package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
)

var reloadRaces = attack{
	name:  "reload-races",
	title: "clients connect, write, poll and follow views while rules, watches and templates change 50 times within seconds; one who loses a rule looks for what it allowed",
	run:   runReloadRaces,
}

// reloaded is configuration n of those that follow one another. In an odd one, bob may read no
// notes, and the template and one watch have other definitions.
func reloaded(n int) string {
	rule, filter, extra := `{ role: anyone, read: "true" }`, `value.n > 0`, "extra: { source: a, allow: [ { role: anyone, read: 'true' } ] }"
	if n%2 == 1 {
		rule, filter, extra = `{ role: staff, read: "true" }`, `value.n >= 0`, fmt.Sprintf("extra%d: { source: a }", n)
	}
	return listeners + accounts + fmt.Sprintf(`
stream: { heartbeat: %ds }
sources: { a: { type: store } }
watches:
  notes: { source: a, allow: [ { role: writers, read: "true", write: "true", delete: "true" }, %s ] }
  part: { view_of: notes, filter: "%s", allow: [ { role: writers, read: "true" }, %s ] }
  "team-{team}": { source: a, params: { team: "[a-z]{1,%d}" }, allow: [ { role: anyone, read: "true", write: "true" } ] }
  %s
`, 5+n%7, rule, filter, rule, 8+n%3, extra)
}

// bad counts answers that no client may get.
type bad struct {
	asked, wrong atomic.Int64
	first        atomic.Value // string
}

func (b *bad) count(path string, status int, header http.Header) {
	b.asked.Add(1)
	if status < 500 || status == http.StatusServiceUnavailable && header.Get("Retry-After") != "" {
		return
	}
	b.wrong.Add(1)
	b.first.CompareAndSwap(nil, fmt.Sprintf("%s: %d", path, status))
}

func runReloadRaces(ctx context.Context, r *rig) error {
	t, err := r.start(ctx, reloaded(0), nil)
	if err != nil {
		return err
	}
	writer, bob := t.as("writer", "127.0.0.4"), t.as("bob", "127.0.0.66")
	if err := writer.put(ctx, "notes", "k", `{"n":1}`); err != nil {
		return err
	}
	var b bad
	var late atomic.Int64 // lines with what was written after the last reload
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for i, path := range []string{
		"/v1/watches", "/v1/watches/notes/resources", "/v1/watches/notes/changes?wait=100ms", "/v1/watches/part/resources?fields=n",
		"/v1/watches/team-x/resources", "/v1/watches/extra/resources", "/v1/events?watch=notes&until=end_of_snapshot", "/v1/events?watch=part&until=end_of_snapshot&filter=value.n%3C5",
	} {
		all.Go(func() {
			ask(asking, &b, t.as([]string{"bob", "ann", "writer"}[i%3], fmt.Sprint("127.0.0.", 70+i)), http.MethodGet, path)
		})
	}
	for _, path := range []string{"/v1/watches/notes/resources/w", "/v1/watches/team-y/resources/w"} {
		all.Go(func() { ask(asking, &b, writer, http.MethodPut, path) })
	}
	for _, path := range []string{"/v1/events?watch=notes", "/v1/events?watch=notes&fields=n", "/v1/events?watch=part&watch=notes", "/v1/events?watch=part&filter=value.n%3E0"} {
		all.Go(func() {
			for asking.Err() == nil {
				bob.follow(asking, path, func(line string) {
					if strings.Contains(line, "hidden-at-last") {
						late.Add(1)
					}
				})()
				_ = process.Sleep(asking, 20*time.Millisecond) // it has ended
			}
		})
	}
	for n := range 51 {
		if err := reload(ctx, t, n+1); err != nil {
			return err
		}
	}
	return afterReloads(ctx, r, t, &b, &late)
}

// afterReloads checks what is seen once the last configuration is in effect.
func afterReloads(ctx context.Context, r *rig, t *target, b *bad, late *atomic.Int64) error {
	writer, bob := t.as("writer", "127.0.0.5"), t.as("bob", "127.0.0.67")
	began := time.Now()
	err := process.Await(ctx, "the last configuration", func() (bool, error) {
		return statusOf(ctx, bob, "/v1/watches/notes/resources") == "404" && time.Since(began) > 2*time.Second, nil
	})
	if err != nil {
		return err
	}
	for n := range 20 {
		if err := writer.put(ctx, "notes", fmt.Sprint("hidden-at-last-", n), `{"n":2}`); err != nil {
			return err
		}
	}
	if err := process.Sleep(ctx, time.Second); err != nil {
		return err
	}
	for _, path := range []string{"notes", "part", "extra"} {
		r.equal("after the last reload, bob reads "+path, "404", statusOf(ctx, bob, "/v1/watches/"+path+"/resources"))
	}
	r.report("lines of his streams with what was written since", "0", late.Load() == 0, "%d", late.Load())
	r.equal("the writer reads notes", "200", statusOf(ctx, writer, "/v1/watches/notes/resources"))
	reloads, err := t.Metric(ctx, "watchtide_config_reloads_total")
	if err != nil {
		return err
	}
	first, _ := b.first.Load().(string)
	r.report("reloads that were noticed", "≥ 20", reloads >= 20, "%.0f", reloads)
	r.report("answers of 5xx, but 503 with Retry-After", "0", b.wrong.Load() == 0 && b.asked.Load() > 100, "%d of %d %s", b.wrong.Load(), b.asked.Load(), first)
	said := t.log.String()
	r.report("data races and failed reloads in the log", "0", !strings.Contains(said, "DATA RACE") && !strings.Contains(said, "not reloaded"), "%d, %d", strings.Count(said, "DATA RACE"), strings.Count(said, "not reloaded"))
	return nil
}

// reload puts configuration n into effect, and goes on while it does.
func reload(ctx context.Context, t *target, n int) error {
	file := filepath.Join(t.dir, "gateway.yaml")
	text := strings.ReplaceAll(reloaded(n), "DIR", t.dir)
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return err
	}
	if err := t.Reload(); err != nil {
		return err
	}
	return process.Sleep(ctx, 100*time.Millisecond)
}

// ask makes the same request again and again.
func ask(ctx context.Context, b *bad, c *client, method, path string) {
	for n := 0; ctx.Err() == nil; n++ {
		a, err := c.ask(ctx, method, path, fmt.Sprintf(`{"n":%d}`, n%9))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			a.status = 599 // a connection that was cut off
		}
		b.count(path, a.status, a.header)
		_ = process.Sleep(ctx, 10*time.Millisecond) // it has ended
	}
}
