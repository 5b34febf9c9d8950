package gateway

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/internal/views"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
)

func newGRPCViewRig(t *testing.T) (*grpcRig, *gatewaytest.Views) {
	t.Helper()
	v := gatewaytest.NewViews(t)
	r := newGRPCRig(t, Config{engine: v, Metrics: true}, "orders", "late")
	r.Prime("orders", 3,
		gatewaytest.Resource("a/1", 1, `{"n":1,"labels":{"zone":"x"}}`), gatewaytest.Resource("a/2", 2, `{"n":2,"labels":{"zone":"y"}}`),
		gatewaytest.Resource("b/3", 3, `{"n":3,"labels":{"zone":"y"}}`))
	return r, v
}

// TestWatchListOfAView checks that a call has what its fields select, and that it resumes.
func TestWatchListOfAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newGRPCViewRig(t)
		q := &api.WatchListRequest{Watch: "orders", Prefix: "a", Labels: "zone=y", Filter: "value.n < 9", Fields: []string{"n", "m"}}
		l := r.watchList(q)
		events := l.take()
		if !strings.Contains(events, `upsert a/2 2 {"n":2}`) || strings.Contains(events, "b/3") {
			t.Errorf("got %q", events)
		}
		if got := r.only(); !slices.Equal(got.Views, []introspection.View{{Watch: "orders", Prefix: "a", Labels: "zone=y", Filter: "value.n < 9", Fields: "m,n"}}) {
			t.Errorf("shown as %+v", got)
		}
		r.Commit("orders", 4, gatewaytest.Resource("a/1", 4, `{"n":4,"labels":{"zone":"y"},"x":1}`), gatewaytest.Resource("a/2", 4, `{"n":9,"labels":{"zone":"y"}}`))
		text := l.take()
		if !strings.Contains(text, `upsert a/1 4 {"n":4}`) || !strings.Contains(text, "delete a/2 4") {
			t.Errorf("then %q", text)
		}
		position := events[strings.LastIndex(events, "orders@"):]
		position, _, _ = strings.Cut(position, "\n")
		for _, test := range []struct {
			fields []string
			reset  bool
		}{{[]string{"m,n"}, false}, {[]string{"n"}, true}} {
			again := &api.WatchListRequest{Watch: "orders", Prefix: "a", Labels: "zone=y", Filter: "value.n < 9", Fields: test.fields, Position: position, UntilEndOfSnapshot: true}
			if got := r.watchList(again).take(); strings.Contains(got, "reset epoch_changed") != test.reset || !strings.Contains(got, `{"n":4}`) {
				t.Errorf("resumed with %q at %s: %q", test.fields, position, got)
			}
		}
	})
}

// TestViewsOverGRPC checks lists, single resources, mistakes and refusals.
func TestViewsOverGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, v := newGRPCViewRig(t)
		ctx := t.Context()
		page, err := r.client.ListResources(ctx, &api.ListResourcesRequest{Watch: "orders", Labels: "zone=y", Filter: "value.n > 2", Fields: []string{"n"}})
		if err != nil || len(page.GetResources()) != 1 || page.GetCount() != 1 || string(page.GetResources()[0].GetValue()) != `{"n":3}` || strings.HasPrefix(page.GetPosition(), "orders@e1-") {
			t.Errorf("%v, %v", page, err)
		}
		one, err := r.client.GetResource(ctx, &api.GetResourceRequest{Watch: "orders", Key: "a/1", Prefix: "a", Labels: "zone=x", Filter: "value.n < 2", Fields: []string{"n"}})
		if err != nil || string(one.GetValue()) != `{"n":1}` {
			t.Errorf("%v, %v", one, err)
		}
		_, err = r.client.GetResource(ctx, &api.GetResourceRequest{Watch: "orders", Key: "a/1", Labels: "zone=y"})
		_, missing := r.client.GetResource(ctx, &api.GetResourceRequest{Watch: "orders", Key: "a/9"})
		if status.Code(err) != codes.NotFound || strings.ReplaceAll(err.Error(), "a/1", "a/9") != missing.Error() {
			t.Errorf("a resource outside of the view: %v, want as %v", err, missing)
		}
		const mistake = "filter, column 9: = is no operator"
		_, err = r.client.ListResources(ctx, &api.ListResourcesRequest{Watch: "orders", Filter: "value.n = 1"})
		_, errOne := r.client.GetResource(ctx, &api.GetResourceRequest{Watch: "orders", Key: "a/1", Filter: "value.n = 1"})
		l := r.watchList(&api.WatchListRequest{Watch: "orders", Filter: "value.n = 1"})
		for _, err := range []error{err, errOne, <-l.end} {
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), mistake) {
				t.Errorf("a mistake: %v", err)
			}
		}
		for reason, code := range map[string]codes.Code{views.TooMany: codes.Unavailable, views.TooManyOfAClient: codes.ResourceExhausted} {
			v.Refuse(&views.Refusal{Reason: reason, Limit: 7})
			_, err = r.client.ListResources(ctx, &api.ListResourcesRequest{Watch: "orders", Filter: "value.n == 1"})
			l = r.watchList(&api.WatchListRequest{Watch: "orders", Filter: "value.n == 1"})
			for _, err := range []error{err, <-l.end} {
				if status.Code(err) != code {
					t.Errorf("%s: %v", reason, err)
				}
			}
			if n := counter(t, r.gateway, "watchtide_refusals_total", "transport", "grpc", "reason", reason); n != 1 {
				t.Errorf("%v refusals are counted", n)
			}
		}
		v.Refuse(nil)
		late := r.watchList(&api.WatchListRequest{Watch: "late", Filter: "value.n == 1", UntilEndOfSnapshot: true})
		if err := <-late.end; status.Code(err) != codes.Unavailable {
			t.Errorf("a view that is not primed: %v", err)
		}
		if n := r.gateway.admission.Count(); n != 0 {
			t.Errorf("%d calls are open", n)
		}
	})
}
