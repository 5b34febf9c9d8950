package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/watchtide/watchtide/bench/internal/process"
)

// settings are what the configuration of a gateway has besides its watches.
type settings struct {
	stream    string // in the section stream
	many, few string // in a watch
	sections  string // sections of their own
}

// viewLimits are those of a gateway that has views.
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
  many: { source: bench%s }
  few: { source: bench%s }
%s`

// gateway is a gateway process, with the bench as its upstream. For one goroutine, except
// for Get.
type gateway struct {
	*process.Gateway
	upstream *upstream // static after construction
}

// startGateway starts a program and waits until its watches are primed.
func startGateway(ctx context.Context, program, dir string, p plan, s settings, d data) (*gateway, error) {
	u, err := serveUpstream(d)
	if err != nil {
		return nil, err
	}
	own, err := os.MkdirTemp(dir, "gateway") // it reads its file again when that changes
	if err != nil {
		u.close()
		return nil, err
	}
	file := filepath.Join(own, "gateway.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, p.heartbeat, s.stream, u.address, s.many, s.few, s.sections), 0o644); err != nil {
		u.close()
		return nil, err
	}
	g, err := process.Start(ctx, program, file)
	if err != nil {
		u.close()
		return nil, err
	}
	return &gateway{Gateway: g, upstream: u}, nil
}

// stop ends the gateway and its upstream.
func (g *gateway) stop() {
	g.Stop()
	g.upstream.close()
}

// memory is what a gateway holds.
type memory struct {
	heap  float64 // bytes in use after a collection, stacks included
	rss   float64 // resident
	views float64 // that it has counted for views
}

func (g *gateway) memory(ctx context.Context) (m memory, err error) {
	var text []byte
	for range 2 { // finalizers run between two collections
		if text, err = g.Get(ctx, g.Operations, "/debug/pprof/heap?gc=1&debug=1"); err != nil {
			return m, err
		}
	}
	// The figures in the text are of right after the collection: the text itself is garbage.
	var heap, stacks float64
	for line := range strings.Lines(string(text)) {
		fmt.Sscanf(line, "# HeapAlloc = %g", &heap)
		fmt.Sscanf(line, "# Stack = %g /", &stacks)
	}
	if heap == 0 || stacks == 0 {
		return m, errors.New("the heap profile says nothing of the heap, or of the stacks")
	}
	m.heap = heap + stacks
	for name, to := range map[string]*float64{"process_resident_memory_bytes": &m.rss, "watchtide_views_bytes": &m.views} {
		if *to, err = g.Metric(ctx, name); err != nil {
			return m, err
		}
	}
	return m, nil
}
