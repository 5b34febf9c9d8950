package etcdsource

import (
	"context"
	"errors"
	"io"
	"math"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// watch is one watch of the range, on a stream of its own: what it says of
// progress concerns no other.
type watch struct {
	// Static after construction.
	call etcdserverpb.Watch_WatchClient

	// Written by receive; never closed.
	responses chan response
}

// response is what the member sent, or why there is nothing more.
type response struct {
	*etcdserverpb.WatchResponse
	err error
}

// errEnded is the orderly end of a stream, of which there is none that a client
// did not ask for.
var errEnded = errors.New("the member ended the watch")

// openWatch asks for all that happens from a revision on; 0: from now on. The
// first response says that it does.
//
// A revision that the cluster has not reached must not be asked for: the member
// would accept it, and be silent up to it.
func openWatch(ctx context.Context, on *member, keys keyRange, from uint64) (*watch, error) {
	// A member that has lost the others would know of nothing new, and not say so.
	ctx = clientv3.WithRequireLeader(ctx)
	call, err := etcdserverpb.NewWatchClient(on.client.ActiveConnection()).Watch(ctx, grpc.MaxCallRecvMsgSize(math.MaxInt32))
	if err != nil {
		return nil, err
	}
	err = call.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
		CreateRequest: &etcdserverpb.WatchCreateRequest{
			Key: []byte(keys.start), RangeEnd: []byte(keys.end), StartRevision: int64(from), Fragment: true,
		},
	}})
	if errors.Is(err, io.EOF) { // what happened is to be received
		_, err = call.Recv()
	}
	if err != nil {
		return nil, err
	}
	// A few, so that the next response is read while one is committed.
	return &watch{call: call, responses: make(chan response, 16)}, nil
}

// receive reads the stream to its end, the last response, or to that of ctx.
// Fragments are put together: a transaction may be spread over several.
func (w *watch) receive(ctx context.Context) {
	var whole *etcdserverpb.WatchResponse
	for {
		r, err := w.call.Recv()
		if errors.Is(err, io.EOF) {
			err = errEnded
		}
		if err == nil && whole != nil {
			r.Events = append(whole.Events, r.GetEvents()...)
		}
		if err == nil && r.GetFragment() {
			whole = r
			continue
		}
		whole = nil
		select {
		case w.responses <- response{r, err}:
		case <-ctx.Done(): // not that of the stream, which ends with it
			return
		}
		if err != nil {
			return
		}
	}
}

// askProgress has the member say how far the watch is.
func (w *watch) askProgress() error {
	err := w.call.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_ProgressRequest{
		ProgressRequest: &etcdserverpb.WatchProgressRequest{},
	}})
	if errors.Is(err, io.EOF) { // what happened is being received
		return nil
	}
	return err
}

// canceled says why the member ended a watch.
func canceled(r *etcdserverpb.WatchResponse) error {
	if r.GetCompactRevision() != 0 {
		return rpctypes.ErrCompacted
	}
	reason := r.GetCancelReason()
	for _, known := range []error{
		rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCUserEmpty, rpctypes.ErrGRPCInvalidAuthToken,
		rpctypes.ErrGRPCAuthOldRevision, rpctypes.ErrGRPCCompacted, rpctypes.ErrGRPCNoLeader,
	} {
		if reason == known.Error() || reason == rpctypes.ErrorDesc(known) {
			return rpctypes.Error(known)
		}
	}
	if reason == "" {
		reason = "no reason given"
	}
	return errors.New("the member canceled the watch: " + reason)
}
