//go:build servers

package consul

import (
	"fmt"
	"testing"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// keepCached has the server keep its snapshot of all artists for the next
// watches, as it does for ten seconds while there is a watch. It returns when the
// server has made one.
func (a *artists) keepCached(t *testing.T, c Config) {
	t.Helper()
	watch, err := a.client.WatchList(t.Context(), &pbresource.WatchListRequest{Type: a.typ, Tenancy: c.tenancy()})
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if e.GetEndOfSnapshot() != nil {
			return
		}
	}
}

// stale counts the outdated events that a watch of the server sends: it proves
// that the hazard is real, and that the test exercises it.
func (a *artists) stale(t *testing.T, c Config, until string) (upserts map[string]int) {
	t.Helper()
	watch, err := a.client.WatchList(t.Context(), &pbresource.WatchListRequest{Type: a.typ, Tenancy: c.tenancy()})
	if err != nil {
		t.Fatal(err)
	}
	upserts = map[string]int{}
	for {
		e, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		r := e.GetUpsert().GetResource()
		upserts[r.GetId().GetName()]++
		if r.GetVersion() == until {
			return upserts
		}
	}
}

// TestCachedSnapshot: a watch that is opened within ten seconds of another one gets
// the other one's snapshot, and then all changes since. No subscriber may see
// objects go back in time, or deleted ones reappear for a moment.
func TestCachedSnapshot(t *testing.T) {
	for _, tenancy := range []string{"", Wildcard} {
		t.Run("tenancy "+tenancy, func(t *testing.T) {
			server := resourceService(t)
			cachedSnapshot(t, artistsAt(t, server.Addr()), server.Addr(), tenancy)
		})
	}
}

// TestCachedSnapshotOfAFullServer is the same with a full server.
func TestCachedSnapshotOfAFullServer(t *testing.T) {
	eachConsul(t, "-server", "", func(t *testing.T, c *consul) {
		for _, tenancy := range []string{"", Wildcard} {
			cachedSnapshot(t, c.artists, c.Addr(), tenancy)
			for _, name := range []string{"changed", "last"} {
				c.mustDelete(t, name)
			}
		}
	})
}

func cachedSnapshot(t *testing.T, a *artists, address, tenancy string) {
	t.Helper()
	proxy := realserver.NewProxy(t, address)
	c := Config{Address: proxy.Addr(), Resources: Resources{Tenancy: Tenancy{Partition: tenancy, Namespace: tenancy}}}
	a.mustPut(t, "doomed", `"old"`)
	a.mustPut(t, "changed", `"old"`)
	a.keepCached(t, c)
	w := follow(t, texts{newSource(t, c)})

	for i := range 5 {
		a.mustPut(t, "changed", fmt.Sprint(i))
		a.mustPut(t, "ghost", fmt.Sprint(i))
	}
	a.mustDelete(t, "doomed")
	a.mustDelete(t, "ghost")
	last := a.mustPut(t, "last", `"one"`)
	w.holds("last", `"one"`)
	if told := a.stale(t, c, last.GetVersion()); told["doomed"] == 0 || told["ghost"] < 5 || told["changed"] < 6 { // Consul repeats one now and then
		t.Fatalf("a new watch sends %v: the snapshot is not from the cache", told)
	}
	before := len(w.all())
	proxy.Cut()
	a.mustPut(t, "last", `"two"`)
	w.holds("last", `"two"`)
	w.is(stream.InSync)
	for _, e := range w.all()[before:] {
		if (e.Type == stream.Upsert || e.Type == stream.Delete) && e.Resource.Key != inDefault+"last" || e.Type == stream.Reset {
			t.Errorf("after the reconnect it sent %v of %q", e.Type, e.Resource.Key)
		}
	}

	fresh := follow(t, texts{newSource(t, c)})
	a.mustPut(t, "last", `"three"`)
	fresh.holds("last", `"three"`)
	for _, e := range fresh.all() {
		if k := e.Resource.Key; k == inDefault+"doomed" || k == inDefault+"ghost" {
			t.Errorf("a fresh gateway showed %v of %q, which was deleted", e.Type, k)
		}
	}
}

// TestGhostsBeyondTheNewest: the newest objects were deleted, so that no list
// reveals that the watch reports the past.
func TestGhostsBeyondTheNewest(t *testing.T) {
	server := resourceService(t)
	a := artistsAt(t, server.Addr())
	c := Config{Address: server.Addr()}
	a.mustPut(t, "kept", `"one"`)
	a.keepCached(t, c)
	for i := range 20 {
		a.mustPut(t, manyName(i), `"one"`)
	}
	for i := range 20 {
		a.mustDelete(t, manyName(i))
	}
	w := follow(t, texts{newSource(t, c)})
	a.mustPut(t, "new", `"one"`)
	w.holds("new", `"one"`)
	a.mustPut(t, manyName(0), `"again"`)
	w.holds(manyName(0), `"again"`)
	var seen []string
	for _, e := range w.all() {
		if e.Type == stream.Upsert {
			seen = append(seen, e.Resource.Key)
		}
	}
	if len(seen) != 3 || len(w.deleted()) > 0 {
		t.Errorf("the subscriber saw %q, and %q deleted", seen, w.deleted())
	}
}

// TestCachedSnapshotInDevMode: Consul's own controllers keep the snapshot cached,
// and write to the resources.
func TestCachedSnapshotInDevMode(t *testing.T) {
	eachConsul(t, "-dev", "", func(t *testing.T, c *consul) {
		proxy := realserver.NewProxy(t, c.Addr())
		source := Config{Address: proxy.Addr(), Resources: Resources{Tenancy: Tenancy{Partition: Wildcard, Namespace: Wildcard}}}
		c.mustPut(t, "doomed", `"old"`)
		w := follow(t, texts{newSource(t, source)})
		for i := range 5 {
			c.mustPut(t, "ghost", fmt.Sprint(i))
		}
		w.holds("ghost", "4")
		c.mustDelete(t, "doomed")
		c.mustDelete(t, "ghost")
		w.holds("ghost", "")
		w.holds("doomed", "")
		before := len(w.all())
		proxy.Cut()
		c.mustPut(t, "last", `"one"`)
		w.holds("last", `"one"`)
		for _, e := range w.all()[before:] {
			if k := e.Resource.Key; k == inDefault+"ghost" || k == inDefault+"doomed" || e.Type == stream.Reset {
				t.Errorf("after the reconnect it sent %v of %q", e.Type, k)
			}
		}
	})
}
