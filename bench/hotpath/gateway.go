package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/stream"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
)

// watch is the name of the only watch.
const watch = "services"

// server is a gateway on loopback whose watch is fed by this process. Static
// after construction; for one goroutine.
type server struct {
	address string
	keys    int
	commits chan stream.Resource
	stop    context.CancelFunc
	ended   chan error
	watches *streamwatch.Registry
}

// serve starts a gateway whose watch has that many resources of 300 bytes.
func serve(ctx context.Context, resources int) (*server, error) {
	s := &server{keys: resources, commits: make(chan stream.Resource), ended: make(chan error, 1), watches: streamwatch.NewRegistry()}
	w, err := s.watches.Add(streamwatch.Config{Name: watch, SourceName: "hotpath", Source: stream.SourceFunc(s.source)})
	if err != nil {
		return nil, err
	}
	g, err := gateway.New(gateway.Config{Registry: s.watches, StreamSettings: gateway.StreamSettings{DrainDelay: -1, Drain: -1}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.address = listener.Addr().String()
	ctx, s.stop = context.WithCancel(ctx)
	go func() { s.ended <- g.Serve(ctx, gateway.Listeners{HTTP: listener}) }()
	return s, w.Prime(ctx)
}

// source implements stream.Source: a snapshot, then the changes of commit.
func (s *server) source(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	if err := sink.Reset("hotpath"); err != nil {
		return err
	}
	value := []byte(`{"pad":"` + strings.Repeat("x", 290) + `"}`)
	for i := range s.keys {
		if err := sink.Upsert(stream.Resource{Key: key(i), Revision: uint64(i + 1), Value: value}); err != nil {
			return err
		}
	}
	if err := sink.Commit(uint64(s.keys)); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-s.commits:
			if err := errors.Join(sink.Upsert(r), sink.Commit(r.Revision)); err != nil {
				return err
			}
		}
	}
}

// commit makes n commits of one event of 200 bytes each.
func (s *server) commit(n int, interval time.Duration) error {
	tick := time.NewTicker(max(interval, 1))
	defer tick.Stop()
	for i := range n {
		value := fmt.Appendf(nil, `{"at":%d,"pad":"`, time.Now().UnixNano())
		value = append(value, strings.Repeat("x", 198-len(value))+`"}`...)
		select {
		case s.commits <- stream.Resource{Key: key(i % s.keys), Revision: uint64(s.keys + i + 1), Value: value}:
		case err := <-s.ended:
			return fmt.Errorf("the gateway has ended: %w", err)
		}
		if interval > 0 {
			<-tick.C
		}
	}
	return nil
}

func key(i int) string { return fmt.Sprintf("resource-%07d", i) }

func (s *server) close() {
	s.stop()
	<-s.ended
	s.watches.Close()
}
