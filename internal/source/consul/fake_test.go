package consul

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/consul/proto-public/pbconnectca"
	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	artistType = "demo.v2.Artist"
	artistURL  = "type.googleapis.com/hashicorp.consul.internal.demo.v2.Artist"
	// inDefault is the key prefix of Consul's default partition and namespace.
	inDefault = "default/default/"
)

// fake is a Consul in memory whose behavior a test defines, for behavior that
// the real one shows too seldom, or never on the loopback interface. Its fields
// are set before it serves.
type fake struct {
	pbresource.UnimplementedResourceServiceServer
	pbconnectca.UnimplementedConnectCAServiceServer

	watch func(n int, out watchStream) error              // the n-th watch, from 1
	list  func(n int) ([]*pbresource.Resource, error)     // the n-th list, from 1
	read  func(name string) (*pbresource.Resource, error) // nil: not found, as for probes
	roots func(n int) (trustDomain string, err error)     // nil: not implemented
	// probe answers the probes; nil: not found.
	probe func(ctx context.Context) error
	at    string // the epoch that the watch has at first

	mu     sync.Mutex // guards what follows
	calls  map[string]int
	tokens []string // of watches
}

type watchStream = grpc.ServerStreamingServer[pbresource.WatchEvent]

func (f *fake) call(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[name]++
	return f.calls[name]
}

// called is how often each method was called.
func (f *fake) called(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[name]
}

func (f *fake) WatchList(_ *pbresource.WatchListRequest, out watchStream) error {
	f.mu.Lock()
	md, _ := metadata.FromIncomingContext(out.Context())
	f.tokens = append(f.tokens, strings.Join(md.Get(tokenKey), ","))
	f.mu.Unlock()
	return f.watch(f.call("watch"), out)
}

func (f *fake) List(ctx context.Context, _ *pbresource.ListRequest) (*pbresource.ListResponse, error) {
	if md, _ := metadata.FromIncomingContext(ctx); strings.Join(md.Get(consistencyKey), "") != "consistent" {
		return nil, status.Error(codes.InvalidArgument, "want a consistent list")
	}
	all, err := f.list(f.call("list"))
	return &pbresource.ListResponse{Resources: all}, err
}

func (f *fake) Read(ctx context.Context, r *pbresource.ReadRequest) (*pbresource.ReadResponse, error) {
	if md, _ := metadata.FromIncomingContext(ctx); strings.Join(md.Get(consistencyKey), "") != "consistent" {
		return nil, status.Error(codes.InvalidArgument, "want a consistent read")
	}
	name := r.GetId().GetName()
	f.call("read " + name)
	if strings.HasSuffix(name, probeName) {
		if f.probe != nil {
			return nil, f.probe(ctx)
		}
		return nil, status.Error(codes.NotFound, "resource not found")
	}
	if f.read == nil {
		return nil, status.Error(codes.NotFound, "resource not found")
	}
	one, err := f.read(name)
	return &pbresource.ReadResponse{Resource: one}, err
}

func (f *fake) WatchRoots(_ *pbconnectca.WatchRootsRequest, out grpc.ServerStreamingServer[pbconnectca.WatchRootsResponse]) error {
	if f.roots == nil {
		return status.Error(codes.Unimplemented, "unknown service")
	}
	domain, err := f.roots(f.call("roots"))
	if err != nil {
		return err
	}
	if err := out.Send(&pbconnectca.WatchRootsResponse{TrustDomain: domain}); err != nil {
		return err
	}
	<-out.Context().Done()
	return out.Context().Err()
}

// one is a resource "name@version", whose uid is "name" and what follows '#'.
func one(text string) *pbresource.Resource {
	name, version, _ := strings.Cut(text, "@")
	version, life, _ := strings.Cut(version, "#")
	return &pbresource.Resource{
		Id: &pbresource.ID{
			Name: name, Uid: name + life,
			Type:    &pbresource.Type{Group: "demo", GroupVersion: "v2", Kind: "Artist"},
			Tenancy: &pbresource.Tenancy{Partition: "default", Namespace: "default"},
		},
		Version: version, Data: &anypb.Any{TypeUrl: artistURL, Value: artistBytes(`"` + text + `"`)},
	}
}

func several(text string) (all []*pbresource.Resource) {
	for _, word := range strings.Fields(text) {
		all = append(all, one(word))
	}
	return all
}

// always returns the same list every time.
func always(text string) func(int) ([]*pbresource.Resource, error) {
	return func(int) ([]*pbresource.Resource, error) { return several(text), nil }
}

// tell sends events: "+a@5" an upsert, "-a@5" a deletion, "." the end of the
// snapshot.
func tell(out watchStream, events string) {
	for _, word := range strings.Fields(events) {
		e := &pbresource.WatchEvent{}
		switch word[0] {
		case '+':
			e.Event = &pbresource.WatchEvent_Upsert_{Upsert: &pbresource.WatchEvent_Upsert{Resource: one(word[1:])}}
		case '-':
			e.Event = &pbresource.WatchEvent_Delete_{Delete: &pbresource.WatchEvent_Delete{Resource: one(word[1:])}}
		default:
			e.Event = &pbresource.WatchEvent_EndOfSnapshot_{EndOfSnapshot: &pbresource.WatchEvent_EndOfSnapshot{}}
		}
		_ = out.Send(e) // a disconnected client does not matter
	}
}

func hold(out watchStream) error {
	<-out.Context().Done()
	return out.Context().Err()
}

// lines is a Sink that records its calls.
type lines struct {
	stream.PlainSink
	mu    sync.Mutex
	all   []string
	epoch []string
	value []byte // the last one
}

func (l *lines) add(format string, args ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf(format, args...))
	return nil
}

func (l *lines) Reset(epoch string) error {
	l.mu.Lock()
	l.epoch = append(l.epoch, epoch)
	l.mu.Unlock()
	return l.add("reset")
}

func (l *lines) Upsert(r stream.Resource) error {
	l.mu.Lock()
	l.value = r.Value
	l.mu.Unlock()
	return l.add("+%s@%d", strings.TrimPrefix(r.Key, inDefault), r.Revision)
}

func (l *lines) Delete(key string, revision uint64) error {
	return l.add("-%s@%d", strings.TrimPrefix(key, inDefault), revision)
}

func (l *lines) Commit(revision uint64) error { return l.add("=%d", revision) }

func (l *lines) Status(s stream.State, reason string) error {
	return l.add("%s", strings.TrimSpace(fmt.Sprint(s, " ", reason)))
}

// take returns the calls since the last time, in one line.
func (l *lines) take() string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	all := strings.Join(l.all, " ")
	l.all = nil
	return all
}

func (l *lines) want(t *testing.T, what, want string) {
	t.Helper()
	if got := l.take(); got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// bubble runs a source of a fake in fake time. watch runs it once, until it ends
// or the bubble does.
func bubble(t *testing.T, f *fake, c Config, test func(t *testing.T, watch func() *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := make(memoryNet)
		server := grpc.NewServer(grpc.WaitForHandlers(true))
		pbresource.RegisterResourceServiceServer(server, f)
		pbconnectca.RegisterConnectCAServiceServer(server, f)
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(network.listener()) })
		c.Address, c.network = "passthrough:memory", network.dial
		s := newSource(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		test(t, func() *running {
			r := &running{ended: make(chan struct{})}
			watching.Go(func() {
				defer close(r.ended)
				r.err = s.Watch(ctx, stream.Resume{Epoch: f.at}, &r.lines)
			})
			return r
		})
		cancel()
		watching.Wait()
		server.Stop()
		serving.Wait()
	})
}

// running is one Watch call.
type running struct {
	lines
	ended chan struct{}
	err   error // once it has ended
}

// memoryNet is a network in memory, for one server.
type memoryNet chan net.Conn

func (m memoryNet) dial(ctx context.Context, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m memoryNet) listener() *memoryListener {
	return &memoryListener{conns: m, closed: make(chan struct{})}
}

// memoryListener gives a server the connections of a network in memory.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	close(l.closed)
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }

// newSource returns a source of artists.
func newSource(t *testing.T, c Config) *Source {
	t.Helper()
	if c.Type == "" {
		c.Type = artistType
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// endsWith runs a source until it gives up, and requires all parts in the error.
func endsWith(t *testing.T, c Config, parts ...string) {
	t.Helper()
	err := newSource(t, c).Watch(t.Context(), stream.Resume{}, streamtest.NewSinkRecorder(stream.Resume{}, nil))
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v\nwant %q in it", err, part)
		}
	}
}

func artistBytes(name string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), name)
}
