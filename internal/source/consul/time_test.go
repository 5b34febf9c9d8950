package consul

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// quiet is a server that holds a@5, and has nothing more to send.
func quiet() *fake {
	return &fake{
		watch: func(_ int, out watchStream) error { tell(out, "."); return hold(out) },
		list:  always("a@5"),
	}
}

// TestStall: a server that sends nothing and answers nothing is detected.
func TestStall(t *testing.T) {
	f := quiet()
	f.probe = func(ctx context.Context) error {
		if f.called("read "+probeName) < 3 {
			return status.Error(codes.NotFound, "resource not found")
		}
		<-ctx.Done()
		return ctx.Err()
	}
	bubble(t, f, Config{ProbeInterval: 2 * time.Second}, func(t *testing.T, watch func() *running) {
		began := time.Now()
		w := watch()
		<-w.ended
		if took := time.Since(began); took != 6*time.Second {
			t.Errorf("gave up after %v, want 2 s after the third probe", took)
		}
		if !errors.Is(w.err, stream.ErrStalled) || !strings.HasSuffix(w.err.Error(), "no answer to a small read within 2s") {
			t.Errorf("error %v", w.err)
		}
		w.want(t, "meanwhile", "reset +a@5 =5")
	})
}

// TestQuietServerIsFollowed for hours.
func TestQuietServerIsFollowed(t *testing.T) {
	bubble(t, quiet(), Config{}, func(t *testing.T, watch func() *running) {
		w := watch()
		after(time.Hour)
		w.want(t, "in an hour", "reset +a@5 =5")
		select {
		case <-w.ended:
			t.Errorf("it ended: %v", w.err)
		default:
		}
	})
}

// TestNoLeader: the servers' data may be incomplete, which is reported and
// waited out, before the snapshot and after it.
func TestNoLeader(t *testing.T) {
	leaderless := status.Error(codes.Internal, "failed list: leader unknown")
	f := quiet()
	began := time.Now()
	f.list = func(n int) ([]*pbresource.Resource, error) {
		if n <= 4 {
			return nil, leaderless
		}
		return several("a@5"), nil
	}
	f.probe = func(context.Context) error {
		if at := time.Since(began); 9*time.Second < at && at < 21*time.Second {
			return leaderless
		}
		return status.Error(codes.NotFound, "resource not found")
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		began = time.Now()
		w := watch()
		after(900 * time.Millisecond)
		w.want(t, "at first", "stale no leader: failed list: leader unknown")
		after(time.Second)
		w.want(t, "with a leader", "in_sync reset +a@5 =5")
		after(10 * time.Second)
		w.want(t, "without again", "stale no leader: failed list: leader unknown")
		after(10*time.Second + 2*retryEvery)
		w.want(t, "and with one", "in_sync")
	})
}

// TestNoLeaderForADoubt: whether a resource exists can be asked later.
func TestNoLeaderForADoubt(t *testing.T) {
	f := quiet()
	f.watch = func(_ int, out watchStream) error {
		tell(out, ".")
		after(time.Second)
		tell(out, "+b@9")
		return hold(out)
	}
	f.read = func(string) (*pbresource.Resource, error) {
		if f.called("read b") < 3 {
			return nil, status.Error(codes.Internal, "failed read: No cluster leader")
		}
		return one("b@9"), nil
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		w := watch()
		after(3 * time.Second)
		w.want(t, "all", "reset +a@5 =5 stale no leader: failed read: No cluster leader in_sync +b@9 =9")
	})
}

// TestRateLimit: a server that gets too many requests is asked again.
func TestRateLimit(t *testing.T) {
	f := quiet()
	f.list = func(n int) ([]*pbresource.Resource, error) {
		if n == 1 {
			return nil, status.Error(codes.ResourceExhausted, "rate limit exceeded, try again later or against a different server")
		}
		return several("a@5"), nil
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		w := watch()
		after(time.Second)
		w.want(t, "all", "stale rate limit exceeded, try again later or against a different server in_sync reset +a@5 =5")
	})
}

// TestTokenThatIsDeleted: the token is deleted while nothing happens.
func TestTokenThatIsDeleted(t *testing.T) {
	f := quiet()
	f.probe = func(context.Context) error {
		return status.Error(codes.Internal, "failed getting authorizer: ACL not found")
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		w := watch()
		<-w.ended
		if w.err == nil || !strings.Contains(w.err.Error(), "want token_file") {
			t.Errorf("error %v", w.err)
		}
	})
}

// TestTokenRotation: another token in the file is used within the time of a
// probe, in the same Watch call.
func TestTokenRotation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	writeToken(t, file, "first")
	f := quiet()
	bubble(t, f, Config{TokenFile: file}, func(t *testing.T, watch func() *running) {
		w := watch()
		w.want(t, "with the first", "reset +a@5 =5")
		writeToken(t, file, "second")
		after(DefaultProbe + time.Second)
		w.want(t, "with the second", "reset +a@5 =5")
		if !slices.Equal(f.tokens, []string{"first", "second"}) {
			t.Errorf("watched with %q", f.tokens)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		<-w.ended
		if w.err == nil || !strings.Contains(w.err.Error(), "ACL token: "+file+": no such file") {
			t.Errorf("without a file: %v", w.err)
		}
	})
}

// TestClusterID: the id names the order, whatever the address; another cluster at
// the same address shares nothing with the one before.
func TestClusterID(t *testing.T) {
	f := quiet()
	f.watch = func(n int, out watchStream) error {
		tell(out, ".")
		after(time.Minute / 2)
		return status.Error(codes.Unavailable, "going down")
	}
	f.list = func(n int) ([]*pbresource.Resource, error) { return several([]string{"a@5", "a@9", "a@2"}[n-1]), nil }
	f.roots = func(n int) (string, error) {
		switch n {
		case 1, 2:
			return "", status.Error(codes.FailedPrecondition, "Connect CA is not yet initialized")
		case 3:
			return "1111.consul", nil
		case 4:
			return "", status.Error(codes.Unavailable, "not now")
		}
		return "2222.consul", nil
	}
	bubble(t, f, Config{ListInterval: time.Hour}, func(t *testing.T, watch func() *running) {
		var names []string
		for _, want := range []string{"+a@5 =5", "+a@9 =9", "+a@2 =2"} {
			w := watch()
			<-w.ended
			w.want(t, "a cluster", "reset "+want)
			names = append(names, w.epoch...)
		}
		if names[0] != names[1] || names[0] == names[2] {
			t.Errorf("epochs %q: want the same for the same cluster, whether or not it names itself each time", names)
		}
		for domain, want := range map[string]string{"1111.consul": names[0], "2222.consul": names[2]} {
			e := newEpochs(&Config{Address: "elsewhere:1", Resources: Resources{Type: artistType}})
			e.enter(domain, "")
			if e.name() != want {
				t.Errorf("at another address the epoch of %s is %s, want %s", domain, e.name(), want)
			}
		}
	})
}

func writeToken(t *testing.T, file, token string) {
	t.Helper()
	// As orchestrators do it: no partial file is ever visible.
	if err := os.WriteFile(file+".new", []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}
