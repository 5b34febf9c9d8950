package peers

import (
	"context"
	"regexp"

	"github.com/watchtide/watchtide/bench/internal/peers/feed"
)

// listening matches the line that a command of this repository prints once it
// listens.
var listening = regexp.MustCompile(`listening on (\S+)`)

// startFed builds and starts a command of this repository that serves the
// events it reads from its standard input. s defines its requests and markers.
func startFed(ctx context.Context, o Options, pkg string, s Server, arguments ...string) (*Server, error) {
	program, err := build(ctx, o, benches, pkg)
	if err != nil {
		return nil, err
	}
	p, err := start(ctx, o, listening, program, arguments...)
	if err != nil {
		return nil, err
	}
	s.Address, s.PIDs = p.words[1], []int{p.cmd.Process.Pid}
	s.Publish, s.Stop = feed.NewWriter(p.stdin, p.stdout).Publish, p.stop
	return &s, nil
}

// get is a request for a path, without end.
func get(path string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
}
