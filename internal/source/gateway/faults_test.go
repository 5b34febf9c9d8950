package gateway_test

import (
	"context"
	"slices"
	"testing"

	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
	"github.com/watchtide/watchtide/internal/streamtest/faults"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestFaults subjects the source to every fault of a gateway. Writes go to that
// gateway's own upstream, which stays up when the gateway is killed.
func TestFaults(t *testing.T) {
	o := newOrigin(t)
	proxy := realserver.NewProxy(t, o.address)
	u, err := gatewaysource.New(gatewaysource.Config{URL: "http://" + proxy.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	faults.Run(t, &faults.Rig{
		Name: "gateway", Source: source(t, u, "notes", ""), Proxy: proxy,
		Put: o.putResource, Delete: o.deleteResource, List: o.listResources,
		Kill: o.kill, Restart: o.restart,
		Wipe:  func() error { o.wipe(); return nil },
		Close: o.kill,
	})
}

// restart starts a gateway that knows only the address of its upstream.
func (o *origin) restart() error {
	o.kill()
	r := watch.NewRegistry()
	o.watch = add(o.t, r, "notes", o.store.Source("notes"))
	o.start(r)
	prime(o.t, o.watch)
	return nil
}

func (o *origin) putResource(ctx context.Context, key, value string) (stream.Resource, error) {
	r, _, err := o.store.Writer("notes").Put(ctx, stream.PutRequest{Key: key, Value: []byte(value)})
	return r, err
}

func (o *origin) deleteResource(ctx context.Context, key string) (uint64, error) {
	if _, err := o.store.Writer("notes").Delete(ctx, stream.DeleteRequest{Key: key}); err != nil {
		return 0, err
	}
	_, revision, err := o.listResources(ctx)
	return revision, err
}

func (o *origin) listResources(ctx context.Context) ([]stream.Resource, uint64, error) {
	return list(ctx, o.store)
}

func list(ctx context.Context, s *store.Store) (all []stream.Resource, revision uint64, err error) {
	page, err := s.ListResources(ctx, &pb.ListResourcesRequest{Watch: "notes"})
	if err != nil {
		return nil, 0, err
	}
	for _, r := range page.GetResources() {
		all = append(all, stream.Resource{Key: r.GetKey(), Revision: r.GetRevision(), Value: slices.Clone(r.GetValue())})
	}
	return all, page.GetRevision(), nil
}
