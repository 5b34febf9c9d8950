package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// watchName is that of the only watch.
const watchName = "crowd"

const rootConfiguration = `
http: { listen: %q }
grpc: { listen: "127.0.0.1:0" }
operations: { listen: "127.0.0.1:0" }
stream: { %s }
sources: { local: { type: store, path: %q } }
watches: { ` + watchName + `: { source: local } }
`

const leafConfiguration = `
http: { listen: "127.0.0.1:0" }
grpc: { listen: "127.0.0.1:0" }
operations: { listen: "127.0.0.1:0" }
stream: { %s }
sources: { root: { type: gateway, url: "http://%s" } }
watches: { ` + watchName + `: { source: root, required: true } }
`

// tree is the root and its leaves, with their subscribers. Owned by one goroutine.
type tree struct {
	// Static after construction.
	plan    plan
	dir     string
	program string
	address string // of the root
	truth   *streamtest.Truth
	log     *os.File // of all gateways

	root   *process.Gateway
	leaves []*leaf

	events   uint64 // that each subscriber must have by now
	revision uint64 // the newest
	next     int    // number of the next change
}

// leaf is a place for a gateway, in which one takes the place of another.
type leaf struct {
	generators []*generator

	mu         sync.Mutex
	gateway    *process.Gateway
	generation int
	name       string
}

// at is where the leaf listens, and the name of its present gateway.
func (l *leaf) at() (address, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gateway.HTTP, l.name
}

func (l *leaf) set(i int, g *process.Gateway) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.generation++
	l.gateway, l.name = g, fmt.Sprintf("leaf %d.%d", i, l.generation)
}

// generator is a load generator as seen from here.
type generator struct {
	cmd   *exec.Cmd
	calls *rpc.Client
	n     int
}

// plant starts the root, writes the resources, and starts the leaves.
func plant(ctx context.Context, p plan, dir string) (t *tree, err error) {
	t = &tree{plan: p, dir: dir}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.log, err = os.Create(filepath.Join(dir, "gateways.log")); err != nil {
		return t, err
	}
	if t.program, err = process.BuildGateway(ctx, dir); err != nil {
		return t, err
	}
	if t.address, err = freeAddress(); err != nil {
		return t, err
	}
	if err := t.startRoot(ctx); err != nil {
		return t, err
	}
	if err := t.fill(ctx); err != nil {
		return t, err
	}
	for i := range p.leaves {
		g, err := t.startLeaf(ctx)
		if err != nil {
			return t, err
		}
		l := &leaf{}
		l.set(i, g)
		t.leaves = append(t.leaves, l)
	}
	return t, nil
}

// freeAddress is one at which nothing listens, for a gateway that is to be found there again.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (t *tree) startRoot(ctx context.Context) (err error) {
	text := fmt.Sprintf(rootConfiguration, t.address, t.plan.stream, filepath.Join(t.dir, "root.db"))
	t.root, err = t.start(ctx, "root.yaml", text)
	return err
}

func (t *tree) startLeaf(ctx context.Context) (*process.Gateway, error) {
	return t.start(ctx, "leaf.yaml", fmt.Sprintf(leafConfiguration, t.plan.stream, t.address))
}

func (t *tree) start(ctx context.Context, name, text string) (*process.Gateway, error) {
	file := filepath.Join(t.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return process.StartLogged(ctx, t.program, file, t.log)
}

// fill writes the first version of all resources.
func (t *tree) fill(ctx context.Context) error {
	body, err := t.root.Get(ctx, t.address, "/v1/watches/"+watchName+"/resources")
	if err != nil {
		return err
	}
	var list struct{ Position string }
	if err := json.Unmarshal(body, &list); err != nil {
		return err
	}
	positions, err := stream.ParsePositions(list.Position)
	if err != nil || len(positions) != 1 {
		return fmt.Errorf("the position %q of a list: want one (%w)", list.Position, err)
	}
	t.truth = streamtest.NewTruth(positions[0].Epoch, 0)
	for i := range t.plan.resources {
		if err := t.put(ctx, i, t.value("")); err != nil {
			return err
		}
	}
	t.events = uint64(t.plan.resources)
	return nil
}

// change writes a new version of the resource whose turn it is.
func (t *tree) change(ctx context.Context) error {
	t.next++
	t.events++
	return t.put(ctx, t.next%t.plan.resources, t.value(fmt.Sprintf(`"at":%d,"n":%d,`, time.Now().UnixNano(), t.next)))
}

// value is an object of the planned size that begins with some members.
func (t *tree) value(members string) string {
	return `{` + members + `"text":"` + strings.Repeat("x", max(0, t.plan.bytes-len(members)-len(`{"text":""}`))) + `"}`
}

// put writes a resource, and notes what is true from then on.
func (t *tree) put(ctx context.Context, i int, value string) error {
	key := fmt.Sprintf("resource/%04d", i)
	url := "http://" + t.address + "/v1/watches/" + watchName + "/resources/" + key
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(value))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode/100 != 2 {
		return fmt.Errorf("PUT %s: %s: %s (%w)", url, answer.Status, body, err)
	}
	var written struct {
		Revision uint64 `json:",string"`
	}
	if err := json.Unmarshal(body, &written); err != nil {
		return fmt.Errorf("PUT %s: %q: %w", url, body, err)
	}
	t.revision = written.Revision
	t.truth.Append(t.revision, log.Change{Resource: stream.Resource{Key: key, Revision: t.revision, Value: []byte(value)}})
	return nil
}

// populate starts the load generators, and connects all subscribers.
func (t *tree) populate(ctx context.Context) error {
	var opening sync.WaitGroup
	failed := make([]error, len(t.leaves))
	for i, l := range t.leaves {
		n := t.plan.subscribers*(i+1)/len(t.leaves) - t.plan.subscribers*i/len(t.leaves)
		for earlier := 0; earlier < n; {
			one := min(n-earlier, t.plan.generated)
			g, err := startGenerator(ctx, Start{Address: l.gateway.HTTP, Earlier: earlier}, one)
			if err != nil {
				return err
			}
			l.generators, earlier = append(l.generators, g), earlier+one
		}
		opening.Go(func() {
			for _, g := range l.generators {
				failed[i] = errors.Join(failed[i], g.calls.Call("Generator.Open", g.n, new(bool)))
			}
		})
	}
	opening.Wait()
	return errors.Join(failed...)
}

func startGenerator(ctx context.Context, s Start, n int) (*generator, error) {
	g := &generator{cmd: exec.CommandContext(ctx, os.Args[0], "-generate"), n: n}
	g.cmd.Stderr = os.Stderr
	in, err := g.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	g.calls = rpc.NewClient(pipes{out, in})
	return g, g.calls.Call("Generator.Start", s, new(bool))
}

// generators are all of them.
func (t *tree) generators() (all []*generator) {
	for _, l := range t.leaves {
		all = append(all, l.generators...)
	}
	return all
}

// report sums the reports of all generators.
func (t *tree) report(clear bool) (sum Report, err error) {
	for _, g := range t.generators() {
		var r Report
		if err := g.calls.Call("Generator.Report", clear, &r); err != nil {
			return sum, err
		}
		sum.Open, sum.Away = sum.Open+r.Open, sum.Away+r.Away
		sum.Resets, sum.Goodbyes, sum.Returns, sum.Resent = sum.Resets+r.Resets, sum.Goodbyes+r.Goodbyes, sum.Returns+r.Returns, sum.Resent+r.Resent
		sum.Bytes, sum.Events, sum.Reads = sum.Bytes+r.Bytes, sum.Events+r.Events, sum.Reads+r.Reads
		sum.Refused, sum.Lost, sum.Done = sum.Refused+r.Refused, sum.Lost+r.Lost, sum.Done+r.Done
		sum.Gaps.Merge(&r.Gaps)
		sum.Latency.Merge(&r.Latency)
	}
	return sum, nil
}

// check counts the subscribers that have not received exactly what they should have.
func (t *tree) check() (sum Wrong, err error) {
	for _, g := range t.generators() {
		var w Wrong
		if err := g.calls.Call("Generator.Check", Expected{t.events, t.revision}, &w); err != nil {
			return sum, err
		}
		if sum.N += w.N; sum.Example == "" {
			sum.Example = w.Example
		}
	}
	return sum, nil
}

// replace starts a gateway beside that of a leaf, and lets the subscribers move there.
func (t *tree) replace(ctx context.Context, i int) error {
	l := t.leaves[i]
	next, err := t.startLeaf(ctx)
	if err != nil {
		return err
	}
	old := l.gateway
	l.set(i, next)
	for _, g := range l.generators {
		if err := g.calls.Call("Generator.Move", next.HTTP, new(bool)); err != nil {
			return err
		}
	}
	return old.Drain(ctx)
}

// pids are the processes of the leaves, and of the generators.
func (t *tree) pids() (leaves, generators []int) {
	for _, l := range t.leaves {
		leaves = append(leaves, l.gateway.PID())
	}
	for _, g := range t.generators() {
		generators = append(generators, g.cmd.Process.Pid)
	}
	return leaves, generators
}

// close ends all processes.
func (t *tree) close() {
	for _, l := range t.leaves {
		for _, g := range l.generators {
			g.calls.Close()
			g.cmd.Wait() // it ends with its input
		}
		l.gateway.Stop()
	}
	if t.root != nil {
		t.root.Stop()
	}
	if t.log != nil {
		t.log.Close()
	}
}
