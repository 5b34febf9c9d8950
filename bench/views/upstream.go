package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/watchtide/watchtide/bench/internal/process"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
)

const (
	// many is the watch that is viewed; few is a watch of the same process with ten
	// resources.
	many = "many"
	few  = "few"
)

// data are the resources of the watch: groups of the same size, each with a prefix and a
// team of its own. Static after construction.
type data struct{ resources, groups int }

func (d data) key(i int) string { return fmt.Sprintf("group-%05d/resource-%06d", i%d.groups, i) }

// value is the JSON of resource i, of about 300 bytes. Its member n is 17, m is i, and load is random.
func (d data) value(i int) []byte {
	const text = "runs behind the front proxy and is restarted by its unit when the probe has failed three times, and so on"
	return fmt.Appendf(nil,
		`{"at":%d,"id":"%040x","address":"10.1.%d.%d:8080","node":"node-%03d","zone":"zone-%d","state":"passing","team":"t%d","n":17,"m":%d,"load":%d,"note":"%s"}`,
		time.Now().UnixNano(), uint64(i)*0x9e3779b97f4a7c15, i>>8&255, i&255, i%500, i%3, i%d.groups, i, rand.N(1_000_000), text)
}

// upstream is a gRPC server that speaks WatchList: it has both watches, and sends the
// changes of one to its caller.
type upstream struct {
	pb.UnimplementedWatchServiceServer
	// Static after construction.
	data
	address string
	server  *grpc.Server
	changes chan int
	taken   chan error // one for each change
	ended   chan struct{}
	turn    sync.Mutex // held by the call that sends the changes
	// Guarded by turn.
	revision uint64
}

// serveUpstream starts it on a free port.
func serveUpstream(d data) (*upstream, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &upstream{
		data: d, address: listener.Addr().String(), server: grpc.NewServer(),
		changes: make(chan int), taken: make(chan error), ended: make(chan struct{}),
	}
	pb.RegisterWatchServiceServer(u.server, u)
	go func() {
		defer close(u.ended)
		u.server.Serve(listener) // until it is stopped
	}()
	return u, nil
}

// commit changes resource i, in a transaction of its own.
func (u *upstream) commit(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, process.Patience)
	defer cancel()
	select {
	case u.changes <- i:
		return <-u.taken
	case <-ctx.Done():
		return fmt.Errorf("commit: no gateway takes it: %w", context.Cause(ctx))
	}
}

func (u *upstream) close() {
	u.server.Stop()
	<-u.ended
}

// WatchList implements pb.WatchServiceServer, for one caller at a time of each watch.
func (u *upstream) WatchList(r *pb.WatchListRequest, out grpc.ServerStreamingServer[pb.WatchListResponse]) error {
	if r.Watch == few {
		if err := u.snapshot(out, few, data{resources: 10, groups: 1}, 10); err != nil {
			return err
		}
		<-out.Context().Done()
		return context.Cause(out.Context())
	}
	u.turn.Lock()
	defer u.turn.Unlock()
	u.revision = max(u.revision, uint64(u.resources))
	if err := u.snapshot(out, many, u.data, u.revision); err != nil {
		return err
	}
	for {
		select {
		case i := <-u.changes:
			u.revision++
			m := upsert(u.key(i), u.revision, u.value(i))
			m.Position = position(many, u.revision)
			err := out.Send(m)
			u.taken <- err
			if err != nil {
				return err
			}
		case <-out.Context().Done():
			return context.Cause(out.Context())
		}
	}
}

func (u *upstream) snapshot(out grpc.ServerStreamingServer[pb.WatchListResponse], watch string, d data, revision uint64) error {
	if err := out.Send(&pb.WatchListResponse{Event: &pb.WatchListResponse_Reset_{Reset_: &pb.Reset{Reason: "initial"}}}); err != nil {
		return err
	}
	for i := range d.resources {
		if err := out.Send(upsert(d.key(i), uint64(i+1), d.value(i))); err != nil {
			return err
		}
	}
	return out.Send(&pb.WatchListResponse{
		Event:    &pb.WatchListResponse_EndOfSnapshot{EndOfSnapshot: &pb.EndOfSnapshot{Revision: revision, Count: uint64(d.resources)}},
		Position: position(watch, revision),
	})
}

func position(watch string, revision uint64) string {
	return fmt.Sprintf("%s@bench-%d", watch, revision)
}

func upsert(key string, revision uint64, value []byte) *pb.WatchListResponse {
	return &pb.WatchListResponse{Event: &pb.WatchListResponse_Upsert{
		Upsert: &pb.Upsert{Resource: &pb.Resource{Key: key, Revision: revision, Value: value}},
	}}
}
