package consulsource

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/consul/proto-public/pbresource"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/streamtest/faultproxy"
	"github.com/watchtide/watchtide/stream/streamtest/faults"
	"github.com/watchtide/watchtide/stream/streamtest/realserver"
)

// shownAs is a resource as a source whose values are texts shows it.
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

// rig is a source of a server behind a proxy, for the faults.
func (a *artists) rig(t *testing.T, name, address string) *faults.Rig {
	proxy := faultproxy.New(t, address)
	source := newSource(t, Config{Address: proxy.Addr(), Probe: MinProbe, Relist: 2 * time.Second})
	return &faults.Rig{
		Name: name, Source: texts{source}, Proxy: proxy, Close: source.Close,
		Notice: 2 * MinProbe,
		Key:    func(i int) string { return fmt.Sprintf("%s%c-%02d", inDefault, 'a'+i%3, i) },
		Put: func(ctx context.Context, key, value string) (stream.Resource, error) {
			ctx, end := context.WithTimeout(ctx, time.Second)
			defer end()
			r, err := a.put(ctx, key, value)
			if err != nil {
				return stream.Resource{}, err
			}
			return shownAs(r)
		},
		Delete: func(ctx context.Context, key string) (uint64, error) {
			ctx, end := context.WithTimeout(ctx, time.Second)
			defer end()
			return 0, a.delete(ctx, key)
		},
		List: a.listShown,
	}
}

func (a *artists) listShown(ctx context.Context) (out []stream.Resource, newest uint64, err error) {
	ctx, end := context.WithTimeout(ctx, time.Second)
	defer end()
	list, err := a.list(ctx, "")
	for _, r := range list {
		shown, err := shownAs(r)
		if err != nil {
			return nil, 0, err
		}
		out, newest = append(out, shown), max(newest, shown.Revision)
	}
	return out, newest, err
}

// closing ends the server too: the goroutines that hear what it prints are not
// those that the source has left.
func closing(r *faults.Rig, s *realserver.Server) func() {
	source := r.Close
	return func() { source(); s.Kill() }
}

// TestFaults puts the source through everything that can happen to a connection,
// and to a server that keeps nothing.
func TestFaults(t *testing.T) {
	server := resourceService(t)
	rig := artistsAt(t, server.Addr()).rig(t, "consul", server.Addr())
	rig.Pause, rig.Resume = server.Pause, server.Resume
	rig.Wipe = server.Restart
	rig.Close = closing(rig, server)
	faults.Run(t, rig)
}

// TestFaultsOfAFullServer adds those that need one which keeps what it has.
func TestFaultsOfAFullServer(t *testing.T) {
	eachConsul(t, "-server", "", func(t *testing.T, c *consul) {
		rig := c.rig(t, "consul", c.Addr())
		rig.Pause, rig.Resume = c.Pause, c.Resume
		rig.Kill, rig.Restart = c.Kill, c.Restart
		rig.Close = closing(rig, c.Server)
		faults.Run(t, rig)
	})
}
