//go:build servers

package nats

import (
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/streamtest/faults"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

func TestFaults(t *testing.T) {
	data, kept := t.TempDir(), t.TempDir()
	s := realserver.Start(t, realserver.Build(t, "nats"), "-listen", realserver.FreeAddress(t), "-data", data)
	w := &writer{t: t, server: s, config: jetstream.KeyValueConfig{Bucket: "faults"}}
	if err := w.create(); err != nil {
		t.Fatal(err)
	}
	proxy := realserver.NewProxy(t, s.Addr())
	faults.Run(t, &faults.Rig{
		Name: "nats", Proxy: proxy,
		Source: source(t, proxy.Addr(), "faults", func(c *Config) { c.StallAfter = 700 * time.Millisecond }),
		Put:    w.put, Delete: w.delete, List: w.list,
		Kill: s.Kill, Restart: s.Restart, Pause: s.Pause, Resume: s.Resume,
		Wipe: func() error { return wipe(s, data, w) },
		More: []faults.Fault{
			{Name: "bucket made again", Inject: w.create, Wipes: true, Broken: true},
			{Name: "orderly stop and start", Broken: true, Inject: func() error { return keep(s, data, kept) }},
			{Name: "restore of a backup", Wipes: true, Broken: true, Inject: func() error { return restore(s, data, kept) }},
		},
		Close: func() { w.close(); s.Kill() },
	})
}

// wipe deletes everything on a server, and recreates its bucket.
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

// keep stops a server in an orderly way, copies its data, and starts it.
func keep(s *realserver.Server, data, kept string) error {
	if err := s.Stop(); err != nil {
		return err
	}
	if err := os.CopyFS(kept, os.DirFS(data)); err != nil {
		return err
	}
	return s.Restart()
}

// restore starts a server with the data that was kept.
func restore(s *realserver.Server, data, kept string) error {
	s.Kill()
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	if err := os.CopyFS(data, os.DirFS(kept)); err != nil {
		return err
	}
	return s.Restart()
}
