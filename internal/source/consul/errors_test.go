package consul

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestHints covers errors that only a cluster reports.
func TestHints(t *testing.T) {
	with, without := &Config{Resources: Resources{Type: artistType}, Address: "a:1", TokenFile: "file"}, &Config{Resources: Resources{Type: artistType}, Address: "a:1"}
	for _, c := range []struct {
		config *Config
		err    error
		want   string
	}{
		{with, status.Error(codes.Internal, "failed getting authorizer: ACL not found"), "want a token that exists in file"},
		{without, status.Error(codes.Internal, "failed getting authorizer: ACL not found"), "want token_file with a token that may read this type"},
		{with, status.Error(codes.PermissionDenied, "lacks permission 'key:list'"), "want a token whose policy allows to list and to read this type"},
		{without, status.Error(codes.Unauthenticated, "no token"), "want token_file"},
		{with, status.Error(codes.Internal, "failed list: rpc error: code = ResourceExhausted desc = grpc: received message larger than max (9 vs. 8)"), "want the leader's address, or name_prefix"},
	} {
		got := c.config.failed(c.err, "")
		if !strings.Contains(got.Error(), c.want) || !strings.HasPrefix(got.Error(), "consul a:1, demo.v2.Artist: ") || !errors.Is(got, c.err) {
			t.Errorf("%v became %q, want %q in it", c.err, got, c.want)
		}
	}
}

// TestTokensAreNotShown, not even those that the server repeats.
func TestTokensAreNotShown(t *testing.T) {
	c := &Config{Resources: Resources{Type: artistType}, Address: "a:1", TokenFile: "file"}
	got := c.failed(status.Error(codes.Internal, "token 1234-5678 is no good"), "1234-5678").Error()
	if strings.Contains(got, "1234-5678") || !strings.Contains(got, "token [hidden] is no good") {
		t.Errorf("got %q", got)
	}
}

// TestInvalid: events of a server before 1.18 cannot be parsed.
func TestInvalid(t *testing.T) {
	for name, r := range map[string]*pbresource.Resource{
		"no version":    one("a@"),
		"version 0":     one("a@0"),
		"no number":     one("a@one"),
		"no name":       one("@1#uid"),
		"nothing":       nil,
		"no unique id":  {Id: &pbresource.ID{Name: "a"}, Version: "1"},
		"negative":      one("a@-1"),
		"out of bounds": one("a@18446744073709551616"),
	} {
		t.Run(name, func(t *testing.T) {
			f := quiet()
			f.watch = func(_ int, out watchStream) error {
				tell(out, ".")
				_ = out.Send(&pbresource.WatchEvent{Event: &pbresource.WatchEvent_Upsert_{Upsert: &pbresource.WatchEvent_Upsert{Resource: r}}})
				return hold(out)
			}
			bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
				w := watch()
				<-w.ended
				if !errors.Is(w.err, stream.ErrInvalid) || !strings.Contains(w.err.Error(), "as Consul sends them since 1.18") {
					t.Errorf("error %v", w.err)
				}
			})
		})
	}
}

// TestUnknownEvents: unknown events are ignored, since a newer server may send
// them.
func TestUnknownEvents(t *testing.T) {
	f := quiet()
	f.watch = func(_ int, out watchStream) error {
		_ = out.Send(&pbresource.WatchEvent{})
		return hold(out)
	}
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		watch().want(t, "all", "reset +a@5 =5")
	})
}

// TestEndOfTheStream: an orderly end is not an error.
func TestEndOfTheStream(t *testing.T) {
	f := quiet()
	f.watch = func(int, watchStream) error { return nil }
	bubble(t, f, Config{}, func(t *testing.T, watch func() *running) {
		w := watch()
		if <-w.ended; w.err != nil {
			t.Errorf("error %v", w.err)
		}
	})
}
