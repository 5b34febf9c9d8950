package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// patience is how long the bench waits for anything that should happen at once.
const patience = 30 * time.Second

// viewLimits are in the configuration of a gateway that has views.
const viewLimits = `  max_views: 20000
  max_views_per_client: 20000
  memory: { views: 1GiB }
`

const configuration = `
http: { listen: "127.0.0.1:0" }
grpc: { listen: "127.0.0.1:0" }
operations: { listen: "127.0.0.1:0" }
stream:
  heartbeat: %v
%s
sources:
  bench: { type: grpc, address: %q }
watches:
  many: { source: bench }
  few: { source: bench }
`

// gateway is a gateway process, with the bench as its upstream. For one goroutine, except
// for get.
type gateway struct {
	// Static after construction.
	http, operations string // host:port
	upstream         *upstream
	cmd              *exec.Cmd
	read             chan struct{} // closed when all its messages were read
	client           *http.Client
}

// startGateway starts a program and waits until its watches are primed.
func startGateway(ctx context.Context, program, dir string, p plan, limits string, d data) (*gateway, error) {
	u, err := serveUpstream(d)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "gateway.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, p.heartbeat, limits, u.address), 0o644); err != nil {
		u.close()
		return nil, err
	}
	g := &gateway{upstream: u, cmd: exec.CommandContext(ctx, program, "serve", "--config", file), read: make(chan struct{})}
	g.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}, Timeout: patience}
	if err := g.start(ctx); err != nil {
		g.stop()
		return nil, err
	}
	return g, nil
}

func (g *gateway) start(ctx context.Context) error {
	messages, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	g.cmd.Stderr = theirs
	err = g.cmd.Start()
	theirs.Close()
	if err != nil {
		messages.Close()
		return err
	}
	found := make(chan map[string]any, 1)
	go func() {
		defer close(g.read)
		defer messages.Close()
		defer close(found)
		listen(messages, found)
	}()
	select {
	case addresses, ok := <-found:
		if !ok {
			return errors.New("the gateway has ended before it listened")
		}
		g.http, _ = addresses["http"].(string)
		g.operations, _ = addresses["operations"].(string)
	case <-time.After(patience):
		return errors.New("the gateway does not listen")
	}
	return await(ctx, "the gateway to be ready", func() (bool, error) {
		_, err := g.get(ctx, g.http, "/readyz")
		return err == nil, nil
	})
}

// listen reads the messages of a gateway, and passes on the one with its addresses.
// Warnings and errors are shown.
func listen(messages io.Reader, found chan<- map[string]any) {
	for lines := bufio.NewScanner(messages); lines.Scan(); {
		var m map[string]any
		if json.Unmarshal(lines.Bytes(), &m) != nil || m["level"] == "WARN" || m["level"] == "ERROR" {
			fmt.Fprintln(os.Stderr, "gateway:", lines.Text())
		}
		if m["msg"] == "listening" && len(found) == 0 {
			found <- m
		}
	}
}

// await waits until something is so.
func await(ctx context.Context, what string, so func() (bool, error)) error {
	for began := time.Now(); ; {
		if ok, err := so(); ok || err != nil {
			return err
		}
		if time.Since(began) > 4*patience {
			return fmt.Errorf("waited %v for %s", 4*patience, what)
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// sleep waits, unless it is cancelled.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// get returns the body of an answer.
func (g *gateway) get(ctx context.Context, address, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := g.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, answer.Status, body)
	}
	return body, err
}

// stop ends the gateway. It is killed: it would wait for clients to read its goodbyes.
func (g *gateway) stop() {
	if g.cmd.Process != nil {
		g.cmd.Process.Kill()
		g.cmd.Wait() // it was killed
		<-g.read
	}
	g.client.CloseIdleConnections()
	g.upstream.close()
}

// cpu is the processor time that the gateway has used so far.
func (g *gateway) cpu() (time.Duration, error) {
	const tick = 10 * time.Millisecond // the unit on every Linux that Go runs on
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The second word, in parentheses, may contain anything; proc(5) counts from 1.
	words := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(words) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %q: want 52 words", g.cmd.Process.Pid, text)
	}
	user, err1 := strconv.Atoi(string(words[11]))
	system, err2 := strconv.Atoi(string(words[12]))
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// metric is a figure of the gateway: the sum, if there is one for each label.
func (g *gateway) metric(ctx context.Context, name string) (sum float64, err error) {
	text, err := g.get(ctx, g.operations, "/metrics")
	if err != nil {
		return 0, err
	}
	found := false
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		words := strings.Fields(rest)
		n, err := strconv.ParseFloat(words[len(words)-1], 64)
		if err != nil {
			return 0, fmt.Errorf("/metrics: %q: %w", line, err)
		}
		sum, found = sum+n, true
	}
	if !found {
		return 0, fmt.Errorf("/metrics has no %s", name)
	}
	return sum, nil
}

// memory is what a gateway holds.
type memory struct {
	heap  float64 // bytes in use after a collection, stacks included
	rss   float64 // resident
	views float64 // that it has counted for views
}

func (g *gateway) memory(ctx context.Context) (m memory, err error) {
	for range 2 { // finalizers run between two collections
		if _, err := g.get(ctx, g.operations, "/debug/pprof/heap?gc=1"); err != nil {
			return m, err
		}
	}
	stacks := 0.0
	for name, to := range map[string]*float64{
		"go_memstats_heap_alloc_bytes": &m.heap, "go_memstats_stack_inuse_bytes": &stacks,
		"process_resident_memory_bytes": &m.rss, "watchtide_views_bytes": &m.views,
	} {
		if *to, err = g.metric(ctx, name); err != nil {
			return m, err
		}
	}
	m.heap += stacks
	return m, nil
}

// keep writes what the gateway answers into a file, in the background. The function that
// it returns waits for that.
func (g *gateway) keep(ctx context.Context, path, file string) (wait func() error) {
	done := make(chan error, 1)
	go func() {
		body, err := g.get(ctx, g.operations, path)
		if err == nil {
			err = os.WriteFile(file, body, 0o644)
		}
		done <- err
	}()
	return func() error { return <-done }
}
