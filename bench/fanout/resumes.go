package main

import (
	"context"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/load/child"
	"github.com/watchtide/watchtide/bench/internal/peers"
)

// endOfSnapshot ends a snapshot or a resume of the gateway.
var endOfSnapshot = []byte("\nevent: end_of_snapshot\n")

// inResumes measures subscribers that all reconnect at once, with a position.
func (b *bench) inResumes(ctx context.Context, p peers.Peer) error {
	if p.Name == file {
		return b.fileOfChanges(ctx, p)
	}
	for _, encoding := range []string{"identity", "gzip"} {
		if err := b.resumes(ctx, p, encoding); err != nil {
			return fmt.Errorf("%s: %w", encoding, err)
		}
	}
	return nil
}

func (b *bench) resumes(ctx context.Context, p peers.Peer, encoding string) error {
	o := peers.Options{Subscribers: b.plan.resumes, Resources: b.plan.resources, ResourceBytes: b.plan.bytes}
	position := ""
	err := b.between(ctx, p, o, child.Options{IDs: true, Done: endOfSnapshot}, func(b *pairing) error {
		err := b.subscribe(1, load.Request{Bytes: b.server.Request})
		if err != nil {
			return err
		}
		if err := b.done(ctx, 1); err != nil {
			return err
		}
		if position, err = b.loader.LastID(0); err != nil {
			return err
		}
		return b.reconnect(ctx, position, encoding)
	})
	return err
}

// reconnect publishes changes, and has all subscribers request them. A second
// load generator counts them.
func (b *pairing) reconnect(ctx context.Context, position, encoding string) error {
	for range b.plan.changes {
		if err := b.publish(1, b.plan.bytes); err != nil {
			return err
		}
	}
	if err := sleep(ctx, b.plan.settle); err != nil {
		return err
	}
	o := child.Options{Address: b.server.Address, EndIsDone: true}
	if encoding == "identity" {
		o.Marker = b.server.Marker
	}
	loader, err := child.Start(ctx, b.bench.loader, o)
	if err != nil {
		return err
	}
	defer loader.Stop()
	again := &pairing{bench: b.bench, name: b.name, server: b.server, loader: loader}
	request := load.With(b.server.Snapshot, "Last-Event-ID", position)
	if encoding != "identity" {
		request = load.With(request, "Accept-Encoding", encoding)
	}
	return again.resumed(ctx, request, encoding)
}

// fileOfChanges measures a server that sends a file with as many bytes to as many connections.
func (b *bench) fileOfChanges(ctx context.Context, p peers.Peer) error {
	o := peers.Options{Subscribers: b.plan.resumes, Resources: b.plan.changes, ResourceBytes: b.plan.bytes}
	return b.between(ctx, p, o, child.Options{EndIsDone: true}, func(b *pairing) error {
		_, err := b.burst(ctx, b.server.Snapshot, "resumes, identity")
		return err
	})
}

// burst opens all connections, and measures from the first of them to the last byte.
func (b *pairing) burst(ctx context.Context, request []byte, figure string) (load.Stats, error) {
	began := time.Now()
	used, err := b.cost(func() error {
		if err := b.loader.Open(b.plan.resumes, load.Request{Bytes: request}); err != nil {
			return err
		}
		return b.done(ctx, uint64(b.plan.resumes))
	})
	if err != nil {
		return load.Stats{}, err
	}
	b.add(figure+": s", time.Since(began).Seconds())
	b.add(figure+": CPU s", used.Total().Seconds())
	s, err := b.loader.Stats()
	if err != nil {
		return load.Stats{}, err
	}
	b.add(figure+": bytes per change", float64(s.Bytes)/float64(b.plan.resumes)/float64(b.plan.changes))
	return s, nil
}

// resumed measures all subscribers that reconnect.
func (b *pairing) resumed(ctx context.Context, request []byte, encoding string) error {
	s, err := b.burst(ctx, request, "resumes, "+encoding)
	if err != nil {
		return err
	}
	if want := uint64(b.plan.resumes * b.plan.changes); encoding == "identity" && s.Events != want {
		return fmt.Errorf("%d changes sent to resumed subscribers, want %d", s.Events, want)
	}
	return nil
}
