package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/peers"
)

// bench is one invocation.
type bench struct {
	plan    plan
	peers   []peers.Peer
	parts   []part
	sheet   sheet
	dir     string // for all files of the servers; removed by close
	loader  string // the program
	missing []string
	failed  []string // which of the other servers failed under load, and why
	began   time.Time
	// again is false in the first run: parts that wait for minutes run only once.
	again bool
}

// part is one kind of measurement of one server.
type part struct {
	name string
	// of reports whether a server has anything to show in this part.
	of  func(plan, peers.Peer) bool
	run func(*bench, context.Context, peers.Peer) error
}

var allParts = []part{
	{"streams", streams, (*bench).inStreams},
	{"snapshots", snapshots, (*bench).inSnapshots},
	{"resumes", resumes, (*bench).inResumes},
	{"stall", ours, (*bench).inStall},
	{"three", ours, (*bench).inThree},
	{"crowd", ours, (*bench).inCrowd},
}

func partNames() string {
	var names []string
	for _, p := range allParts {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// slow are servers that do not keep up with the load for the others: most of
// the time of a run would be spent waiting for them.
var slow = []string{"Pushpin", "grpc-gateway"}

func streams(p plan, peer peers.Peer) bool   { return p.slow || !slices.Contains(slow, peer.Name) }
func snapshots(_ plan, peer peers.Peer) bool { return !slices.Contains(slow, peer.Name) }
func resumes(p plan, peer peers.Peer) bool   { return ours(p, peer) || peer.Name == file }
func ours(_ plan, peer peers.Peer) bool      { return strings.HasPrefix(peer.Name, "gateway") }

func newBench(ctx context.Context, p plan, only, parts string) (*bench, error) {
	b := &bench{plan: p, sheet: sheet{}, began: time.Now()}
	servers, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	kinds, err := regexp.Compile(parts)
	if err != nil {
		return nil, fmt.Errorf("-parts: %w", err)
	}
	b.peers = slices.DeleteFunc(peers.All(), func(p peers.Peer) bool { return !servers.MatchString(p.Name) })
	b.parts = slices.DeleteFunc(slices.Clone(allParts), func(p part) bool { return !kinds.MatchString(p.name) })
	if b.dir, err = os.MkdirTemp("", "fanout"); err != nil {
		return nil, err
	}
	b.loader = filepath.Join(b.dir, "loader")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", b.loader, "github.com/watchtide/watchtide/bench/internal/load/loader")
	if said, err := cmd.CombinedOutput(); err != nil {
		b.close()
		return nil, fmt.Errorf("go build of the load generator: %w\n%s", err, said)
	}
	return b, nil
}

func (b *bench) close() { os.RemoveAll(b.dir) }

// runAll runs every part with every server, one after the other.
func (b *bench) runAll(ctx context.Context) error {
	defer func() { b.again = true }()
	for _, part := range b.parts {
		for _, peer := range b.peers {
			if !part.of(b.plan, peer) || slices.Contains(b.missing, peer.Name) {
				continue
			}
			b.logf("%s: %s", part.name, peer.Name)
			err := part.run(b, ctx, peer)
			if err := b.tolerate(ctx, part, peer, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// tolerate continues without a server that is not installed, or that fails under
// the load: for another server, that is a result; for our own, an error.
func (b *bench) tolerate(ctx context.Context, part part, peer peers.Peer, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, peers.ErrMissing):
		b.logf("%v: continues without it", err)
		b.missing = append(b.missing, peer.Name)
		return nil
	case ctx.Err() != nil || ours(b.plan, peer):
		return fmt.Errorf("%s, %s: %w", part.name, peer.Name, err)
	}
	b.logf("%s: %v: continues with the next", peer.Name, err)
	b.failed = append(b.failed, fmt.Sprintf("%s, %s: %v", peer.Name, part.name, err))
	return nil
}

// logf prints the progress.
func (b *bench) logf(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "%5.0f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, arguments...))
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
