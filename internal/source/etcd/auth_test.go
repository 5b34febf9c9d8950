//go:build servers

package etcd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// secure requires users: root, and gateway, which may read the keys below /a/.
// The server's client becomes root's.
func (s *server) secure() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	read := clientv3.PermissionType(clientv3.PermRead)
	for what, err := range map[string]error{
		"root":           second(s.client.UserAdd(ctx, "root", "r")),
		"role root":      second(s.client.RoleAdd(ctx, "root")),
		"root's role":    second(s.client.UserGrantRole(ctx, "root", "root")),
		"reader":         second(s.client.RoleAdd(ctx, "reader")),
		"permission":     second(s.client.RoleGrantPermission(ctx, "reader", "/a/", clientv3.GetPrefixRangeEnd("/a/"), read)),
		"gateway":        second(s.client.UserAdd(ctx, "gateway", "pass-word")),
		"gateway's role": second(s.client.UserGrantRole(ctx, "gateway", "reader")),
	} {
		if err != nil {
			s.t.Fatalf("%s: %v", what, err)
		}
	}
	if _, err := s.client.AuthEnable(ctx); err != nil {
		s.t.Fatal(err)
	}
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Addr()}, Username: "root", Password: "r", Logger: zap.NewNop()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { root.Close() })
	s.client = root
}

func second[T any](_ T, err error) error { return err }

// passwordFile writes a password into a file; "": there is none.
func passwordFile(t *testing.T, password string) string {
	t.Helper()
	if password == "" {
		return ""
	}
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPasswordRotates: a password that is replaced, in etcd and in the file, interrupts nothing for long.
func TestPasswordRotates(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.secure()
	file := passwordFile(t, "pass-word")
	c := subscribe(t, newSource(t, Config{
		Endpoints: []string{s.Addr()}, Prefix: "/a/", Username: "gateway", PasswordFile: file, StallAfter: time.Second,
	}))
	s.put("/a/x", "1")
	c.awaitState(s, "/a/")
	if err := os.WriteFile(file, []byte("another-password\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.UserChangePassword(t.Context(), "gateway", "another-password"); err != nil {
		t.Fatal(err)
	}
	s.restart() // no token of before is valid
	s.put("/a/x", "2")
	c.awaitState(s, "/a/")
	c.wantResets("initial")
}

// TestLogin: a role for the prefix is enough; restarts, after which no token is
// valid any longer, and expiring tokens do not matter.
func TestLogin(t *testing.T) {
	t.Parallel()
	s := startServer(t, "-token-ttl", "1")
	s.secure()
	c := subscribe(t, newSource(t, Config{
		Endpoints: []string{s.Addr()}, Prefix: "/a/", Username: "gateway", PasswordFile: passwordFile(t, "pass-word"), StallAfter: 12 * time.Second,
	}))
	s.put("/a/x", "1")
	c.awaitState(s, "/a/")
	// The next read comes after the token has expired.
	c.await(func() string {
		if c.watch.Snapshot().Revision() < 2 || time.Since(c.watch.Upstream().Since) < 4*time.Second {
			return "two reads"
		}
		return ""
	})
	c.wantNoReconnects()
	s.restart()
	s.put("/a/x", "2")
	c.awaitState(s, "/a/")
	c.wantResets("initial")
}

// TestRefused: each error suggests a remedy.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.secure()
	for _, test := range []struct {
		name, prefix, username, password string
		want                             []string
	}{
		{"another prefix", "/b/", "gateway", "pass-word", []string{
			`prefix "/b/"`, "permission denied",
			`user "gateway" wants a role with permission to read the keys from "/b/" up to, without, "/b0" (etcdctl role grant-permission ROLE read --prefix "/b/")`}},
		{"everything", "", "gateway", "pass-word", []string{"permission denied", `permission to read all keys (etcdctl role grant-permission ROLE read --prefix "")`}},
		{"a wider prefix", "/a", "gateway", "pass-word", []string{"permission denied", `from "/a" up to, without, "/b"`}},
		{"wrong password", "/a/", "gateway", "another-password", []string{"authentication failed", `want the password of user "gateway"`}},
		{"unknown user", "/a/", "nobody", "pass-word", []string{"authentication failed", `user "nobody"`}},
		{"no user", "/a/", "", "", []string{"user name is empty", "wants a user name and a password"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := subscribe(t, newSource(t, Config{
				Endpoints: []string{s.Addr()}, Prefix: test.prefix, Username: test.username, PasswordFile: passwordFile(t, test.password),
			}))
			c.awaitReason(test.want...)
			if reason := c.watch.Status().Full(); test.password != "" && strings.Contains(reason, test.password) {
				t.Errorf("the reason contains the password: %s", reason)
			}
		})
	}
}

// TestPermissionTakenAway: etcd continues the watch; the gateway reports the lost
// permission, and continues when it is granted again.
func TestPermissionTakenAway(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, s *server) {
		s.secure()
		c := subscribe(t, newSource(t, Config{
			Endpoints: []string{s.Addr()}, Prefix: "/a/", Username: "gateway", PasswordFile: passwordFile(t, "pass-word"), StallAfter: time.Second,
		}))
		s.put("/a/x", "1")
		c.awaitState(s, "/a/")
		if _, err := s.client.UserRevokeRole(t.Context(), "gateway", "reader"); err != nil {
			t.Fatal(err)
		}
		c.awaitReason("permission denied", `wants a role with permission to read the keys from "/a/"`)
		s.put("/a/x", "2")
		if _, err := s.client.UserGrantRole(t.Context(), "gateway", "reader"); err != nil {
			t.Fatal(err)
		}
		c.awaitState(s, "/a/")
		c.awaitSync()
		c.wantResets("initial")
	})
}
