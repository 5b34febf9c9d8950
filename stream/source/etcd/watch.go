package etcd

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

// watch is one watch of the range, on its own stream, so that no other watch
// affects its progress.
type watch struct {
	// Static after construction.
	call etcdserverpb.Watch_WatchClient

	// Written by receive; never closed.
	responses chan response
}

// response is a response of the member, or the error that ends the stream.
type response struct {
	*etcdserverpb.WatchResponse
	err error
}

// errEnded is the orderly end of a stream, which occurs only at the client's
// request.
var errEnded = errors.New("the member ended the watch")

// openWatch requests all changes from a revision on; 0: from now on. The first
// response confirms it.
//
// The revision must not be one that the cluster has not reached: the member
// would accept it, and be silent until then.
func openWatch(ctx context.Context, on *connection, keys keyRange, from uint64) (*watch, error) {
	// A member without a majority would get no changes, and not report that.
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
	if errors.Is(err, io.EOF) { // the reason is still to be received
		_, err = call.Recv()
	}
	if err != nil {
		return nil, err
	}
	// A few, so that the next response is read while one is committed.
	return &watch{call: call, responses: make(chan response, 16)}, nil
}

// receive reads the stream to its end, which is the last response, or until
// ctx ends. Fragments are joined: a transaction may be spread over several.
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

// askProgress requests a progress report of the watch.
func (w *watch) askProgress() error {
	err := w.call.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_ProgressRequest{
		ProgressRequest: &etcdserverpb.WatchProgressRequest{},
	}})
	if errors.Is(err, io.EOF) { // the reason is being received
		return nil
	}
	return err
}

// canceled returns why the member ended a watch.
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
