package natssource

import (
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/watchtide/watchtide/stream/streamtest/faultproxy"
	"github.com/watchtide/watchtide/stream/streamtest/faults"
	"github.com/watchtide/watchtide/stream/streamtest/realserver"
)

func TestFaults(t *testing.T) {
	data := t.TempDir()
	s := realserver.Start(t, realserver.Build(t, "nats"), "-listen", realserver.FreeAddress(t), "-data", data)
	w := &writer{t: t, server: s, config: jetstream.KeyValueConfig{Bucket: "faults"}}
	if err := w.create(); err != nil {
		t.Fatal(err)
	}
	proxy := faultproxy.New(t, s.Addr())
	faults.Run(t, &faults.Rig{
		Name: "nats", Proxy: proxy,
		Source: source(t, proxy.Addr(), "faults", func(c *Config) { c.StallAfter = 700 * time.Millisecond }),
		Put:    w.put, Delete: w.delete, List: w.list,
		Kill: s.Kill, Restart: s.Restart, Pause: s.Pause, Resume: s.Resume,
		Wipe: func() error { return wipe(s, data, w) },
		More: []faults.Fault{
			{Name: "bucket made again", Inject: w.create, Wipes: true, Broken: true},
		},
		Close: func() { w.close(); s.Kill() },
	})
}

// wipe takes everything from a server, and makes its bucket again.
func wipe(s *realserver.Server, data string, w *writer) error {
	s.Kill()
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	if err := s.Restart(); err != nil {
		return err
	}
	return w.create()
}
