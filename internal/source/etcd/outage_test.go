//go:build servers

package etcd

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// servers are the versions each of these tests runs against.
var servers = []struct {
	name  string
	start func(testing.TB) *server
}{
	{"of the client's release", newServer},
	{"3.4", startOldServer},
}

func newServer(t testing.TB) *server { return startServer(t) }

func onEachServer(t *testing.T, test func(*testing.T, *server)) {
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) { test(t, s.start(t)) })
	}
}

// TestCutIsNoticedAtOnce: a lost connection is noticed without a request.
func TestCutIsNoticedAtOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	proxy := realserver.NewProxy(t, s.Addr())
	source := newSource(t, Config{Endpoints: []string{proxy.Addr()}, StallAfter: time.Hour})
	for range 20 {
		r := streamtest.NewSinkRecorder(stream.Resume{}, nil)
		ended := make(chan error, 1)
		go func() { ended <- source.Watch(t.Context(), stream.Resume{}, r) }()
		for changed := r.Changed(); len(r.Commits()) == 0; changed = r.Changed() {
			<-changed
		}
		proxy.Cut()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("Watch did not return after the connection was cut")
		}
	}
}

// TestKilledAndCompacted: changes that were compacted while the server was away
// are found by reading everything; subscribers see the difference.
func TestKilledAndCompacted(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, s *server) {
		proxy := realserver.NewProxy(t, s.Addr())
		c := subscribe(t, newSource(t, Config{Endpoints: []string{proxy.Addr()}, Prefix: "/a/"}))
		for i := range 10 {
			s.put(fmt.Sprint("/a/", i), "1")
		}
		c.awaitState(s, "/a/")
		proxy.Refuse()
		proxy.Cut()
		s.restart()
		s.put("/a/3", "2")
		s.delete("/a/4")
		s.put("/a/new", "1")
		s.put("/a/gone", "1")
		s.delete("/a/gone")
		s.compact()
		proxy.Heal()
		c.awaitState(s, "/a/")
		c.wantResets("initial")
	})
}

func TestWiped(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, s *server) {
		c := subscribe(t, newSource(t, Config{Endpoints: []string{s.Addr()}, Prefix: "/a/"}))
		for i := range 10 {
			s.put(fmt.Sprint("/a/", i), "1")
		}
		c.awaitState(s, "/a/")
		s.wipe()
		s.put("/a/1", "2")
		c.awaitState(s, "/a/")
		c.wantResets("initial", "epoch_changed")
	})
}

// withBackup is a cluster with a backup in its past, and a source that has seen
// later changes.
func withBackup(t *testing.T, s *server, address string) (c *subscriber, backup string) {
	s.put("/a/kept", "1")
	s.put("/a/changed", "1")
	s.put("/a/deleted", "1")
	backup = s.backup()
	c = subscribe(t, newSource(t, Config{Endpoints: []string{address}, Prefix: "/a/"}))
	s.put("/a/changed", "2")
	s.put("/a/created", "1")
	s.delete("/a/deleted")
	c.awaitState(s, "/a/")
	c.awaitSync()
	return c, backup
}

func TestBackupRestored(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, s *server) {
		c, backup := withBackup(t, s, s.Addr())
		s.restore(backup)
		c.awaitState(s, "/a/")
		c.wantResets("initial", "epoch_changed")
	})
}

// TestBackupOvertakes: by the time the source is back, the restored cluster has
// more revisions than it had. Only its content shows it.
func TestBackupOvertakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		start  func(testing.TB) *server
		writes func(*server, int)
	}{
		{"with other keys", newServer, func(s *server, i int) { s.put(fmt.Sprint("/b/", i), "1") }},
		{"with the same keys", newServer, func(s *server, i int) { s.put("/a/changed", fmt.Sprint("other ", i)) }},
		{"with the same keys, 3.4", startOldServer, func(s *server, i int) { s.put("/a/changed", fmt.Sprint("other ", i)) }},
		{"compacted", newServer, func(s *server, i int) { s.put("/a/changed", fmt.Sprint("other ", i)); s.compact() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := test.start(t)
			proxy := realserver.NewProxy(t, s.Addr())
			c, backup := withBackup(t, s, proxy.Addr())
			proxy.Refuse()
			proxy.Cut()
			s.restore(backup)
			for i := range 50 {
				test.writes(s, i)
			}
			proxy.Heal()
			c.awaitState(s, "/a/")
			c.wantResets("initial", "epoch_changed")
		})
	}
}

// TestBackupOvertakesAnotherProcess: the same, and what the source had is known from another process.
func TestBackupOvertakesAnotherProcess(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, s *server) {
		c, backup := withBackup(t, s, s.Addr())
		state := c.watch.Snapshot()
		place := stream.Resume{Epoch: state.SourceEpoch(), Revision: state.Revision()}
		again := func(want int) string {
			source := newSource(t, Config{Endpoints: []string{s.Addr()}, Prefix: "/a/"})
			source.Recognise(place, state.Resources(), nil)
			r := streamtest.NewSinkRecorder(place, nil)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- source.Watch(ctx, place, r) }()
			for changed := r.Changed(); len(r.Commits()) == 0; changed = r.Changed() {
				<-changed
			}
			cancel()
			<-ended
			if r.Resets() != want {
				t.Errorf("%d resets, want %d", r.Resets(), want)
			}
			return r.Resume().Epoch
		}
		s.put("/a/later", "1")
		if got := again(0); got != place.Epoch {
			t.Errorf("the order %s goes on as %s", place.Epoch, got)
		}
		s.restore(backup)
		for i := range 50 {
			s.put(fmt.Sprint("/b/", i), "1")
		}
		if again(1) == place.Epoch {
			t.Errorf("the restored order has the same name, %s", place.Epoch)
		}
	})
}

// TestSnapshotRestored uses etcd's own tool, without and with its option to raise
// the revision: then no revision goes back.
func TestSnapshotRestored(t *testing.T) {
	t.Parallel()
	for _, bump := range []string{"0", "1000000"} {
		t.Run("bump "+bump, func(t *testing.T) {
			s := startServer(t)
			proxy := realserver.NewProxy(t, s.Addr())
			c, backup := withBackup(t, s, proxy.Addr())
			s.Kill()
			db := filepath.Join(backup, "member.etcd", "member", "snap", "db")
			restored := startServer(t, "-restore", db, "-bump", bump)
			proxy.SetTarget(restored.Addr())
			c.awaitState(restored, "/a/")
			c.wantResets("initial", "epoch_changed")
			restored.put("/a/later", "1")
			c.awaitState(restored, "/a/")
		})
	}
}

// TestOtherClusterBehindTheAddress: another cluster is recognised by its id,
// and has the same epoch for every gateway.
func TestOtherClusterBehindTheAddress(t *testing.T) {
	t.Parallel()
	one, other := startServer(t), startServer(t, "-token", "another")
	one.put("/a/x", "1")
	for range 20 {
		other.put("/a/y", "1")
	}
	proxy := realserver.NewProxy(t, one.Addr())
	c := subscribe(t, newSource(t, Config{Endpoints: []string{proxy.Addr()}, Prefix: "/a/"}))
	c.awaitState(one, "/a/")
	proxy.SetTarget(other.Addr())
	proxy.Cut()
	c.awaitState(other, "/a/")
	c.wantResets("initial", "epoch_changed")
	fresh := subscribe(t, newSource(t, Config{Endpoints: []string{other.Addr()}, Prefix: "/a/"}))
	fresh.awaitState(other, "/a/")
	if a, b := c.watch.Snapshot().Epoch(), fresh.watch.Snapshot().Epoch(); a != b {
		t.Errorf("epoch is %q for a source that saw both clusters and %q for one that did not, want the same", a, b)
	}
}

// TestPausedMemberIsReplaced: the source moves to another member.
func TestPausedMemberIsReplaced(t *testing.T) {
	t.Parallel()
	members := startCluster(t, 3)
	c := subscribe(t, newSource(t, Config{Endpoints: addresses(members), Prefix: "/a/", StallAfter: time.Second}))
	members[0].put("/a/x", "1")
	c.awaitState(members[0].server, "/a/")
	for _, m := range members {
		m.Pause()
		members[(m.index+1)%3].put("/a/x", fmt.Sprint(m.index))
		c.awaitState(members[(m.index+1)%3].server, "/a/")
		m.Resume()
	}
	c.wantResets("initial")
}

// TestMemberRemoved removes one from a cluster of three, and then another one dies.
func TestMemberRemoved(t *testing.T) {
	t.Parallel()
	members := startCluster(t, 3)
	c := subscribe(t, newSource(t, Config{Endpoints: addresses(members), Prefix: "/a/", StallAfter: time.Second}))
	members[0].put("/a/x", "1")
	c.awaitState(members[0].server, "/a/")
	members[0].removeMember(members[2])
	members[0].put("/a/x", "2")
	members[0].put("/a/y", "1")
	c.awaitState(members[0].server, "/a/")
	members[1].restart()
	members[0].put("/a/x", "3")
	c.awaitState(members[0].server, "/a/")
	c.wantResets("initial")
}

// TestMajorityLost: a member without a majority gets no changes, and the watch
// reports it.
func TestMajorityLost(t *testing.T) {
	t.Parallel()
	members := startCluster(t, 3)
	c := subscribe(t, newSource(t, Config{Endpoints: []string{members[0].Addr()}, Prefix: "/a/", StallAfter: time.Second}))
	members[1].put("/a/x", "1")
	c.awaitState(members[1].server, "/a/")
	members[1].Kill()
	members[2].Kill()
	c.await(func() string {
		if state := c.watch.Status().State; state != stream.Stale {
			return fmt.Sprintf("the watch is %v, want stale", state)
		}
		return ""
	})
	for _, m := range members[1:] {
		if err := m.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	members[1].put("/a/x", "2")
	c.awaitState(members[1].server, "/a/")
	c.awaitSync()
	c.wantResets("initial")
}

// TestDeadEndpoints: dead endpoints are skipped.
func TestDeadEndpoints(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.put("/a/x", "1")
	c := subscribe(t, newSource(t, Config{
		Endpoints: []string{realserver.FreeAddress(t), s.Addr(), realserver.FreeAddress(t)}, Prefix: "/a/",
	}))
	c.awaitState(s, "/a/")
	for reason, n := range c.watch.Stats().Reconnects {
		if n != 0 {
			t.Errorf("%d connections were lost (%s), want none", n, reason)
		}
	}
}
