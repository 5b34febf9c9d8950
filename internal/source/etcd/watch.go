package etcd

import (
	"context"
	"errors"
	"io"

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
	err   error
	bytes int           // held by its events
	taken chan struct{} // closed by take; nil: it is small
}

// errEnded is the orderly end of a stream, which occurs only at the client's
// request.
var errEnded = errors.New("the member ended the watch")

// openWatch requests all changes from a revision on, without those that are left out; 0: from now
// on. The first response confirms it.
//
// The revision must not be one that the cluster has not reached: the member
// would accept it, and be silent until then.
func openWatch(ctx context.Context, on *connection, keys keyRange, from uint64, without ...etcdserverpb.WatchCreateRequest_FilterType) (*watch, error) {
	// A member without a majority would get no changes, and not report that.
	ctx = clientv3.WithRequireLeader(ctx)
	call, err := etcdserverpb.NewWatchClient(on.client.ActiveConnection()).Watch(ctx, grpc.MaxCallRecvMsgSize(on.largest))
	if err != nil {
		return nil, err
	}
	err = call.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
		CreateRequest: &etcdserverpb.WatchCreateRequest{
			Key: []byte(keys.start), RangeEnd: []byte(keys.end), StartRevision: int64(from), Fragment: true, Filters: without,
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
// ctx ends. It reads no further while a large response waits to be processed.
func (w *watch) receive(ctx context.Context) {
	for {
		r, err := w.call.Recv()
		if errors.Is(err, io.EOF) {
			err = errEnded
		}
		answer := newResponse(r, err)
		select {
		case w.responses <- answer:
		case <-ctx.Done(): // not that of the stream, which ends with it
			return
		}
		if err != nil || !answer.await(ctx) {
			return
		}
	}
}

// largeResponse is from how many bytes on a response is read alone.
const largeResponse = 64 << 10

func newResponse(r *etcdserverpb.WatchResponse, err error) response {
	answer := response{WatchResponse: r, err: err}
	for _, e := range r.GetEvents() {
		answer.bytes += len(e.GetKv().GetKey()) + len(e.GetKv().GetValue()) + kvCost
	}
	if answer.bytes > largeResponse {
		answer.taken = make(chan struct{})
	}
	return answer
}

// await waits until a large response has been taken; false: ctx has ended.
func (r *response) await(ctx context.Context) bool {
	if r.taken == nil {
		return true
	}
	select {
	case <-r.taken:
		return true
	case <-ctx.Done():
		return false
	}
}

// take lets the next response be read.
func (r *response) take() {
	if r.taken != nil {
		close(r.taken)
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
