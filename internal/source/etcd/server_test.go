//go:build servers

package etcd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// server is a real member, of a cluster of its own, and a separate client.
type server struct {
	*realserver.Server
	t      testing.TB
	dir    string
	client *clientv3.Client
	modern bool // of the release that the source is built for
}

// startServer starts the server that the source is built for.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), modern: true}
	args = append([]string{"-listen", realserver.FreeAddress(t), "-data", s.dir}, args...)
	s.Server = realserver.Start(t, realserver.Build(t, "etcd"), args...)
	s.client = newClient(t, s.Addr())
	return s
}

// startOldServer starts the etcd of a Linux distribution, 3.4 in Debian 12; or
// skips the test.
func startOldServer(t testing.TB) *server {
	t.Helper()
	path := os.Getenv("WATCHTIDE_ETCD34")
	if path == "" {
		path = realserver.Installed(t, "etcd")
	}
	address := realserver.FreeAddress(t)
	s := &server{t: t, dir: t.TempDir()}
	s.Server = realserver.Command{Path: path, Address: address, Args: []string{
		"--data-dir", filepath.Join(s.dir, "member.etcd"), "--log-level", "error", "--unsafe-no-fsync",
		"--heartbeat-interval", "50", "--election-timeout", "500",
		"--listen-client-urls", "http://" + address, "--advertise-client-urls", "http://" + address,
		"--listen-peer-urls", "http://127.0.0.1:0", "--initial-advertise-peer-urls", "http://127.0.0.1:0",
		"--initial-cluster", "default=http://127.0.0.1:0",
	}}.Start(t)
	s.client = newClient(t, address)
	s.serving()
	return s
}

// newClient returns a client that quickly reconnects to a server.
func newClient(t testing.TB, address string) *clientv3.Client {
	t.Helper()
	quick := backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.2, MaxDelay: 100 * time.Millisecond}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{address}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: quick, MinConnectTimeout: time.Second})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// restart stops the server as a power cut does, and starts it with its data.
func (s *server) restart() {
	s.t.Helper()
	s.Kill()
	s.start()
}

// start starts a server that was killed, and waits until it serves.
func (s *server) start() {
	s.t.Helper()
	if err := s.Restart(); err != nil {
		s.t.Fatal(err)
	}
	s.serving()
}

// serving waits until there is a leader.
func (s *server) serving() {
	s.t.Helper()
	s.do("get", func(ctx context.Context) error {
		_, err := s.client.Get(ctx, "x")
		return err
	})
}

// do repeats a request until it succeeds: a cluster may lose it during an
// election. So it may be executed twice.
func (s *server) do(what string, request func(context.Context) error) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
		err := request(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %v", what, err)
		}
	}
}

// wipe starts the server with no data, on the same port and under the same
// cluster id.
func (s *server) wipe() {
	s.t.Helper()
	s.Kill()
	if err := os.RemoveAll(filepath.Join(s.dir, "member.etcd")); err != nil {
		s.t.Fatal(err)
	}
	s.start()
}

// backup copies the data of a server, which it stops meanwhile.
func (s *server) backup() (dir string) {
	s.t.Helper()
	dir = s.t.TempDir()
	if err := s.Stop(); err != nil {
		s.t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil {
		s.t.Fatal(err)
	}
	s.start()
	return dir
}

// restore starts the server with the data of a backup.
func (s *server) restore(backup string) {
	s.t.Helper()
	s.Kill()
	if err := os.RemoveAll(filepath.Join(s.dir, "member.etcd")); err != nil {
		s.t.Fatal(err)
	}
	if err := os.CopyFS(s.dir, os.DirFS(backup)); err != nil {
		s.t.Fatal(err)
	}
	s.start()
}

// put writes a key and returns its revision.
func (s *server) put(key, value string) (revision uint64) {
	s.t.Helper()
	s.do("put "+key, func(ctx context.Context) error {
		answer, err := s.client.Put(ctx, key, value)
		if err == nil {
			revision = uint64(answer.Header.Revision)
		}
		return err
	})
	return revision
}

// delete removes a key.
func (s *server) delete(key string) {
	s.t.Helper()
	s.do("delete "+key, func(ctx context.Context) error {
		_, err := s.client.Delete(ctx, key)
		return err
	})
}

// compact discards everything before the present revision.
func (s *server) compact() {
	s.t.Helper()
	s.do("compact", func(ctx context.Context) error {
		answer, err := s.client.Get(ctx, "x")
		if err == nil {
			_, err = s.client.Compact(ctx, answer.Header.Revision)
		}
		if errors.Is(err, rpctypes.ErrCompacted) {
			return nil
		}
		return err
	})
}

// sharedServer returns the server for tests that do not disrupt it. Other tests
// may have left keys.
func sharedServer(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, modern: true}
	s.Server = realserver.Shared(t, realserver.Build(t, "etcd"))
	s.client = newClient(t, s.Addr())
	return s
}
