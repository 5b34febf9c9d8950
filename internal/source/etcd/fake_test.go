package etcd

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// fake is a member in memory with behavior that a real one seldom shows. Safe
// for concurrent use.
type fake struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedWatchServer
	etcdserverpb.UnimplementedMaintenanceServer

	// Static after construction.
	version string
	applied uint64 // entries of the log; with fewer than revisions it has no history
	inUse   int64
	watches func(*fakeWatch)     // serves one watch, to its end
	onRange func(n int, f *fake) // before the n-th read of the range is answered, with mu held; may be nil
	hanging chan struct{}        // what reads wait for, once they hang

	mu       sync.Mutex
	cluster  uint64
	revision int64
	kvs      []*mvccpb.KeyValue // by key
	ranges   int
	opened   int
	hangs    bool
	garbled  bool // answers to transactions hold nothing

	compacted bool // nothing of the past is known

	onPage func(*etcdserverpb.RangeRequest) *etcdserverpb.RangeResponse // answers a page, with mu held; nil: the fake does
	silent bool                                                         // no watch is confirmed
}

// fakeWatch is a watch that a fake serves.
type fakeWatch struct {
	*fake
	etcdserverpb.Watch_WatchServer
	create *etcdserverpb.WatchCreateRequest
	nth    int // the first is 1
}

// serve starts the fake and returns a source that follows it, with the prefix "p/".
func (f *fake) serve(t *testing.T, c Config) *Source {
	t.Helper()
	if f.version == "" {
		f.version = "3.7.3"
	}
	if f.cluster == 0 {
		f.cluster = 7
	}
	listener := bufconn.Listen(1 << 16)
	s := grpc.NewServer()
	etcdserverpb.RegisterKVServer(s, f)
	etcdserverpb.RegisterWatchServer(s, f)
	etcdserverpb.RegisterMaintenanceServer(s, f)
	ended := make(chan struct{})
	go func() { defer close(ended); s.Serve(listener) }()
	t.Cleanup(func() { s.Stop(); <-ended })
	c.Endpoints, c.Prefix = []string{"127.0.0.1:1"}, "p/"
	c.network = func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	source, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func (f *fake) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: f.cluster, Revision: f.revision}
}

func (f *fake) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return &etcdserverpb.StatusResponse{Version: f.version, RaftAppliedIndex: f.applied, DbSizeInUse: f.inUse}, nil
}

// mostRanges is how often the range may be read. A list that does not end would go on for ever, since
// no fake time passes meanwhile.
const mostRanges = 1000

// Range answers reads of the present revision, in a single page.
func (f *fake) Range(_ context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hangs {
		f.mu.Unlock()
		<-f.hanging
		f.mu.Lock()
	}
	if len(r.GetRangeEnd()) == 0 {
		return &etcdserverpb.RangeResponse{Header: f.header()}, nil
	}
	f.ranges++
	if f.onRange != nil {
		f.onRange(f.ranges, f)
	}
	if f.ranges > mostRanges {
		return nil, status.Error(codes.Aborted, "the range is read again and again")
	}
	if f.onPage != nil {
		return f.onPage(r), nil
	}
	answer := &etcdserverpb.RangeResponse{Header: f.header(), Count: int64(len(f.kvs))}
	for _, kv := range f.kvs {
		if kv.ModRevision >= r.GetMinModRevision() {
			answer.Kvs = append(answer.Kvs, kv)
		}
	}
	return answer, nil
}

// Txn answers reads as of any revision with the present state.
func (f *fake) Txn(_ context.Context, r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.compacted {
		return nil, rpctypes.ErrGRPCCompacted
	}
	answer := &etcdserverpb.TxnResponse{Header: f.header()}
	for _, op := range r.GetSuccess() {
		one := &etcdserverpb.RangeResponse{Count: int64(len(f.kvs))}
		for _, kv := range f.kvs {
			if string(kv.Key) == string(op.GetRequestRange().GetKey()) {
				one.Kvs = append(one.Kvs, kv)
			}
		}
		if !f.garbled {
			answer.Responses = append(answer.Responses, &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: one}})
		}
	}
	return answer, nil
}

func (f *fake) Watch(s etcdserverpb.Watch_WatchServer) error {
	r, err := s.Recv()
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.opened++
	w := &fakeWatch{fake: f, Watch_WatchServer: s, create: r.GetCreateRequest(), nth: f.opened}
	created := &etcdserverpb.WatchResponse{Header: f.header(), Created: true}
	silent := f.silent
	f.mu.Unlock()
	if silent {
		w.mute()
		return nil
	}
	if err := s.Send(created); err != nil {
		return err
	}
	f.watches(w)
	return nil
}

// say sends events of one response; the revision of the header is far ahead,
// which is valid and has no meaning.
func (w *fakeWatch) say(events ...*mvccpb.Event) {
	w.Send(&etcdserverpb.WatchResponse{Header: &etcdserverpb.ResponseHeader{ClusterId: w.id(), Revision: 1 << 20}, Events: events})
}

// fragment sends a part of a response.
func (w *fakeWatch) fragment(last bool, events ...*mvccpb.Event) {
	w.Send(&etcdserverpb.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: 1 << 20}, Events: events, Fragment: !last})
}

// progress waits for a request for progress and answers with a revision; false:
// the watch has ended.
func (w *fakeWatch) progress(revision int64) bool {
	if _, err := w.Recv(); err != nil {
		return false
	}
	return w.Send(&etcdserverpb.WatchResponse{
		Header: &etcdserverpb.ResponseHeader{ClusterId: w.id(), Revision: revision}, WatchId: -1}) == nil
}

// idle answers every request for progress with the fake's revision.
func (w *fakeWatch) idle() {
	for {
		w.mu.Lock()
		revision := w.revision
		w.mu.Unlock()
		if !w.progress(revision) {
			return
		}
	}
}

// advance moves the cluster to a revision.
func (w *fakeWatch) advance(revision int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revision = revision
}

// id is the cluster's id.
func (w *fakeWatch) id() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cluster
}

// hang makes all reads hang from now on.
func (w *fakeWatch) hang() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hangs = true
}

// mute answers nothing.
func (w *fakeWatch) mute() {
	for {
		if _, err := w.Recv(); err != nil {
			return
		}
	}
}

func stored(key string, revision int64) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Key: []byte("p/" + key), Value: []byte(`1`), ModRevision: revision, CreateRevision: 1, Version: revision}
}

func put(key string, revision int64) *mvccpb.Event { return &mvccpb.Event{Kv: stored(key, revision)} }

func del(key string, revision int64) *mvccpb.Event {
	return &mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{Key: []byte("p/" + key), ModRevision: revision}}
}

// patience is how long an immediate operation may take. Only failures reach it.
const patience = 20 * time.Second
