package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
)

const (
	// watch is the name of the only watch, here and in the gateway.
	watch = "services"
	// liveKeys is how many keys are changed in turn if there is no snapshot:
	// enough that no subscriber misses a value because of a newer one.
	liveKeys = 10_000
)

// upstream is a gRPC server that speaks WatchList: published events go to its
// one caller.
type upstream struct {
	pb.UnimplementedWatchServiceServer
	// Static after construction.
	address   string
	resources int // in the snapshot
	bytes     int // of each
	server    *grpc.Server
	publishes chan [][]byte
	taken     chan error // one for each publish
	stopped   chan struct{}
	turn      sync.Mutex // held by the call that sends the changes
	// Guarded by turn.
	revision uint64
	// Atomic.
	calls atomic.Int32
}

// serveUpstream starts it on a free port.
func serveUpstream(o Options) (*upstream, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &upstream{
		address: listener.Addr().String(), resources: o.Resources, bytes: o.ResourceBytes,
		server:    grpc.NewServer(grpc.WriteBufferSize(256<<10), grpc.InitialWindowSize(4<<20), grpc.InitialConnWindowSize(4<<20)),
		publishes: make(chan [][]byte), taken: make(chan error), stopped: make(chan struct{}),
	}
	pb.RegisterWatchServiceServer(u.server, u)
	go u.server.Serve(listener)
	return u, nil
}

// publish is one transaction. It returns when gRPC has accepted it.
func (u *upstream) publish(events [][]byte) error {
	select {
	case u.publishes <- events:
		return <-u.taken
	case <-u.stopped:
		return errors.New("publish: the upstream is stopped")
	}
}

// streams is the number of open streams.
func (u *upstream) streams() int { return int(u.calls.Load()) }

func (u *upstream) stop() {
	close(u.stopped)
	u.server.Stop()
}

// WatchList sends the snapshot and then the published events, to one caller at a
// time. Other watches stay empty.
func (u *upstream) WatchList(r *pb.WatchListRequest, out grpc.ServerStreamingServer[pb.WatchListResponse]) error {
	u.calls.Add(1)
	defer u.calls.Add(-1)
	if r.Watch != watch {
		return stayEmpty(out)
	}
	u.turn.Lock()
	defer u.turn.Unlock()
	if err := u.snapshot(out); err != nil {
		return err
	}
	for {
		select {
		case events := <-u.publishes:
			err := u.commit(out, events)
			u.taken <- err
			if err != nil {
				return err
			}
		case <-out.Context().Done():
			return context.Cause(out.Context())
		}
	}
}

// stayEmpty sends an empty snapshot and nothing more.
func stayEmpty(out grpc.ServerStreamingServer[pb.WatchListResponse]) error {
	err := errors.Join(
		out.Send(&pb.WatchListResponse{Event: &pb.WatchListResponse_Reset_{Reset_: &pb.Reset{Reason: "initial"}}}),
		out.Send(&pb.WatchListResponse{Event: &pb.WatchListResponse_EndOfSnapshot{EndOfSnapshot: &pb.EndOfSnapshot{}}}))
	if err == nil {
		<-out.Context().Done()
	}
	return err
}

func (u *upstream) snapshot(out grpc.ServerStreamingServer[pb.WatchListResponse]) error {
	if err := out.Send(&pb.WatchListResponse{Event: &pb.WatchListResponse_Reset_{Reset_: &pb.Reset{Reason: "initial"}}}); err != nil {
		return err
	}
	for i := range u.resources {
		u.revision++
		if err := out.Send(upsert(key(i), u.revision, resourceValue(i, u.bytes))); err != nil {
			return err
		}
	}
	return out.Send(&pb.WatchListResponse{
		Event:    &pb.WatchListResponse_EndOfSnapshot{EndOfSnapshot: &pb.EndOfSnapshot{Revision: u.revision, Count: uint64(u.resources)}},
		Position: u.position(),
	})
}

// commit sends events as one transaction: only the last has a position.
func (u *upstream) commit(out grpc.ServerStreamingServer[pb.WatchListResponse], events [][]byte) error {
	for i, e := range events {
		u.revision++
		m := upsert(u.nextKey(), u.revision, e)
		if i == len(events)-1 {
			m.Position = u.position()
		}
		if err := out.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// nextKey cycles through all keys, in large steps.
func (u *upstream) nextKey() string {
	const step = 7919 // prime, so that every key has its turn
	keys := max(u.resources, liveKeys)
	return key(int(u.revision*step) % keys)
}

func (u *upstream) position() string { return fmt.Sprintf("%s@bench-%d", watch, u.revision) }

func upsert(key string, revision uint64, value []byte) *pb.WatchListResponse {
	return &pb.WatchListResponse{Event: &pb.WatchListResponse_Upsert{
		Upsert: &pb.Upsert{Resource: &pb.Resource{Key: key, Revision: revision, Value: value}},
	}}
}
