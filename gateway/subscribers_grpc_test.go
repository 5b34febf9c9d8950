package gateway

import (
	"context"
	"maps"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
)

// A gRPC call has the same end reasons as a stream.
func TestEndReasonsOverGRPC(t *testing.T) {
	for reason, leave := range map[introspection.DepartureReason]func(r *grpcRig){
		"client_closed": func(r *grpcRig) {
			l := r.watchList(&api.WatchListRequest{Watch: "a"})
			l.take()
			l.cancel()
		},
		"complete": func(r *grpcRig) {
			r.watchList(&api.WatchListRequest{Watch: "a", UntilEndOfSnapshot: true}).take()
		},
		"max_age": func(r *grpcRig) {
			r.watchList(&api.WatchListRequest{Watch: "a"}).take()
			time.Sleep(2 * time.Hour)
		},
		"watch_removed": func(r *grpcRig) {
			r.watchList(&api.WatchListRequest{Watch: "a"}).take()
			r.Registry.Remove("a")
		},
		"watch_replaced": func(r *grpcRig) {
			r.watchList(&api.WatchListRequest{Watch: "a"}).take()
			r.Replace(streamwatch.Config{Name: "a"})
		},
		"write_timeout": func(r *grpcRig) {
			ctx, cancel := context.WithCancel(context.Background())
			r.t.Cleanup(cancel)
			if _, err := r.client.WatchList(ctx, &api.WatchListRequest{Watch: "big"}); err != nil { // and nothing is read
				r.t.Fatal(err)
			}
			synctest.Wait()
			if got := r.only(); got.Transport != "grpc" || got.Lag == 0 || !strings.HasPrefix(got.UserAgent, "grpc-go/") {
				r.t.Errorf("stalled: %+v", got)
			}
			time.Sleep(time.Minute)
		},
	} {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newGRPCRig(t, Config{Metrics: true, StreamSettings: StreamSettings{MaxAge: time.Hour}}, "a", "big")
				r.Prime("a", 7, gatewaytest.Resource("k", 5, "1"))
				r.Prime("big", 7, gatewaytest.Resource("k", 5, `"`+strings.Repeat("x", 1<<20)+`"`))
				synctest.Wait()
				leave(r)
				synctest.Wait()
				got := r.subscribers("")
				if got.Count != 0 || len(got.Left) != 1 || !maps.Equal(got.LeftReasons, map[introspection.DepartureReason]uint64{reason: 1}) {
					t.Fatalf("%+v", got)
				}
				if left := got.Left[0]; left.Reason != reason || left.Transport != "grpc" || reason != "write_timeout" && (left.Events < 3 || left.Bytes == 0) {
					t.Errorf("%+v", left)
				}
			})
		})
	}
}

// TestPrincipalOverGRPC: a call is listed under who makes it and the application of the token, and so
// is its end. Once no call is left, its client is forgotten.
func TestPrincipalOverGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		g.static("ci", "staff")
		access := g.access(wholeWatches("a"))
		access.OperationsRole = "staff"
		r := newGRPCRig(t, Config{Metrics: true, Access: access}, "a")
		r.Prime("a", 1)
		header := strings.TrimPrefix(bearer(g.provider.Token(t, map[string]any{"client_id": "sync-job"})), "Authorization: ")
		ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "authorization", header))
		defer cancel()
		call, err := r.client.WatchList(ctx, &api.WatchListRequest{Watch: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := call.Recv(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := introspection.Principal{Mechanism: "jwt", Issuer: "https://idp.example.com", Name: "ann", ClientID: "sync-job"}
		list := func(query string) introspection.Overview {
			return answerOf[introspection.Overview](r.rig, "/v1/subscribers?"+query, g.as("ci"))
		}
		got := list("group=client_id&principal=" + url.QueryEscape(annText))
		if len(got.Subscribers) != 1 || got.Subscribers[0].Transport != "grpc" || got.Subscribers[0].Principal != want {
			t.Errorf("open: %+v", got.Subscribers)
		}
		if len(got.Groups) != 1 || got.Groups[0].Name != "sync-job (https://idp.example.com)" {
			t.Errorf("groups: %+v", got.Groups)
		}
		cancel()
		synctest.Wait()
		if got := list(""); got.Count != 0 || len(got.Left) != 1 || got.Left[0].Principal != want {
			t.Errorf("ended: %d open, %+v", got.Count, got.Left)
		}
		if n := r.gateway.subscribers.Clients.Keys(); n != 0 {
			t.Errorf("%d clients are remembered without a call", n)
		}
	})
}
