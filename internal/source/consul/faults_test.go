//go:build servers

package consul

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/internal/streamtest/faults"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// shownAs is a resource as a source with texts as values shows it.
func shownAs(r *pbresource.Resource) (stream.Resource, error) {
	version, err := strconv.ParseUint(r.GetVersion(), 10, 64)
	if err != nil {
		return stream.Resource{}, err
	}
	value, err := render(r)
	if err != nil {
		return stream.Resource{}, err
	}
	text, err := textOf(value)
	return stream.Resource{Key: keyOf(r.GetId()), Revision: version, Value: []byte(text)}, err
}

// rig is a source of a server behind a proxy, for the fault tests.
func (a *artists) rig(t *testing.T, name, address string) *faults.Rig {
	proxy := realserver.NewProxy(t, address)
	source := newSource(t, Config{Address: proxy.Addr(), ProbeInterval: MinProbe, ListInterval: 2 * time.Second})
	return &faults.Rig{
		Name: name, Source: texts{source}, Proxy: proxy,
		Notice: 2 * MinProbe,
		Key:    func(i int) string { return fmt.Sprintf("%s%c-%02d", inDefault, 'a'+i%3, i) },
		Put: func(ctx context.Context, key, value string) (stream.Resource, error) {
			r, err := a.put(ctx, key, value)
			if err != nil {
				return stream.Resource{}, err
			}
			shown, err := shownAs(r)
			a.newest = max(a.newest, shown.Revision)
			return shown, err
		},
		Delete: func(ctx context.Context, key string) (uint64, error) {
			return 0, a.delete(ctx, key)
		},
		List: a.listShown,
	}
}

// listShown returns the resources, and the newest version that ever existed: the
// resource that had it may be deleted.
func (a *artists) listShown(ctx context.Context) (out []stream.Resource, newest uint64, err error) {
	ctx, end := context.WithTimeout(ctx, time.Second)
	defer end()
	list, err := a.list(ctx, "")
	for _, r := range list {
		shown, err := shownAs(r)
		if err != nil {
			return nil, 0, err
		}
		out, a.newest = append(out, shown), max(a.newest, shown.Revision)
	}
	return out, a.newest, err
}

// TestFaults puts the source through all faults of a connection, and of a server
// without durable data.
func TestFaults(t *testing.T) {
	server := resourceService(t)
	a := artistsAt(t, server.Addr())
	rig := a.rig(t, "consul", server.Addr())
	rig.Pause, rig.Resume = server.Pause, server.Resume
	rig.Wipe = func() error {
		a.newest = 0
		return server.Restart()
	}
	rig.Close = server.Kill // a goroutine reads its output, too
	faults.Run(t, rig)
}

// TestFaultsOfAFullServer adds the faults that need a durable server.
func TestFaultsOfAFullServer(t *testing.T) {
	eachConsul(t, "-server", "", func(t *testing.T, c *consul) {
		rig := c.rig(t, "consul "+path.Base(t.Name()), c.Addr())
		rig.Pause, rig.Resume = c.Pause, c.Resume
		rig.Kill = c.Kill
		rig.Restart = func() error {
			c.again()
			c.elect()
			return nil
		}
		var snapshot []byte
		rig.More = []faults.Fault{
			{Name: "snapshot saved", Inject: func() error {
				snapshot = c.call(http.MethodGet, "/v1/snapshot", nil)
				return nil
			}},
			{Name: "restore of the snapshot", Wipes: true, Broken: true, Inject: func() error {
				c.call(http.MethodPut, "/v1/snapshot", snapshot)
				c.newest = 0
				return nil
			}},
		}
		rig.Close = c.Kill
		faults.Run(t, rig)
	})
}
