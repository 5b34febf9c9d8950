//go:build servers

package consul

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc"
)

// resourceService is Consul's own resource service, in its own process. Its data
// is gone once it is killed, and its versions start over.
func resourceService(t *testing.T) *realserver.Server {
	t.Helper()
	return realserver.Start(t, realserver.Build(t, "consulresource"), "-listen", realserver.FreeAddress(t))
}

// TestCommonMistakes checks that errors suggest the correct setting.
func TestCommonMistakes(t *testing.T) {
	server := realserver.Shared(t, realserver.Build(t, "consulresource"))
	t.Run("unknown type", func(t *testing.T) {
		endsWith(t, Config{Address: server.Addr(), Resources: Resources{Type: "demo.v2.Nope"}},
			"consul "+server.Addr(), "demo.v2.Nope not registered", "want a type that this server has")
	})
	t.Run("nobody there", func(t *testing.T) {
		endsWith(t, Config{Address: realserver.FreeAddress(t)}, "connection refused")
	})
	t.Run("HTTP port", func(t *testing.T) {
		web := httptest.NewServer(http.NotFoundHandler())
		defer web.Close()
		endsWith(t, Config{Address: web.Listener.Addr().String()}, "want the gRPC port (8502, or 8503 with TLS), not the HTTP port")
	})
	t.Run("TLS port", func(t *testing.T) {
		web := httptest.NewTLSServer(http.NotFoundHandler())
		defer web.Close()
		endsWith(t, Config{Address: web.Listener.Addr().String()}, "want TLS if that is what the port speaks")
	})
	t.Run("another gRPC server", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		other := grpc.NewServer()
		ended := make(chan error)
		go func() { ended <- other.Serve(listener) }()
		endsWith(t, Config{Address: listener.Addr().String()}, "want the gRPC port of Consul 1.18 or later")
		other.Stop()
		<-ended
	})
	t.Run("no file of the token", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		endsWith(t, Config{Address: server.Addr(), TokenFile: file}, "ACL token: "+file+": no such file")
	})
}

// TestAListThatIsTooLarge: the list is one message, and exceeds the limit.
func TestAListThatIsTooLarge(t *testing.T) {
	server := resourceService(t)
	a := artistsAt(t, server.Addr())
	a.mustPut(t, "large", `"`+strings.Repeat("x", 1<<16)+`"`)
	endsWith(t, Config{Address: server.Addr(), MaxMessageBytes: 1 << 15}, "larger than max", "want a larger max_message_bytes, or name_prefix")
}

// TestEndWithTheContext checks that the error has the context's cause.
func TestEndWithTheContext(t *testing.T) {
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	server := realserver.Shared(t, realserver.Build(t, "consulresource"))
	err := newSource(t, Config{Address: server.Addr()}).Watch(ctx, stream.Resume{}, &lines{})
	if !errors.Is(err, why) {
		t.Errorf("error %v, want the cause", err)
	}
}

// refusing is a Sink that rejects a snapshot as old.
type refusing struct {
	lines
	err error
}

func (r *refusing) Commit(uint64) error { return r.err }

// TestSinkThatRefusesTheOrder: whether the source or the sink notices that the
// order was broken, the next snapshot starts another one.
func TestSinkThatRefusesTheOrder(t *testing.T) {
	server := resourceService(t)
	s := newSource(t, Config{Address: server.Addr()})
	name := func(sink stream.Sink) string {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := s.Watch(ctx, stream.Resume{}, sink)
		r := sink.(*refusing)
		if !errors.Is(err, r.err) {
			t.Errorf("ended with %v, want the sink's error", err)
		}
		return r.epoch[0]
	}
	other := errors.New("something else")
	names := []string{
		name(&refusing{err: other}),
		name(&refusing{err: fmt.Errorf("%w: really", stream.ErrBehind)}),
		name(&refusing{err: fmt.Errorf("%w: really", stream.ErrOrder)}),
		name(&refusing{err: other}),
	}
	if names[0] != names[1] || names[1] == names[2] || names[2] == names[3] {
		t.Errorf("epochs %q: want another one after each refusal of the order", names)
	}
}
