package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/rpc"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
)

func TestGRPCUnary(t *testing.T) {
	r := newAPIRig(t, Config{})
	ctx := t.Context()

	put, err := r.grpc.PutResource(ctx, &api.PutResourceRequest{Watch: "notes", Key: "a", Value: []byte(`18446744073709551615`)})
	if err != nil || !put.GetCreated() || put.GetResource().GetRevision() != 2 || string(put.GetResource().GetValue()) != "18446744073709551615" {
		t.Errorf("PutResource: %v, %v", put, err)
	}
	got, err := r.grpc.GetResource(ctx, &api.GetResourceRequest{Watch: "notes", Key: "a"})
	if err != nil || !proto.Equal(got, put.GetResource()) {
		t.Errorf("GetResource: %v, %v", got, err)
	}
	list, err := r.grpc.ListResources(ctx, &api.ListResourcesRequest{Watch: "hosts", PageSize: 2, Prefix: "default/"})
	if err != nil || len(list.GetResources()) != 2 || list.GetCount() != 2 || list.GetNextPageToken() != "" || list.GetRevision() != 7 {
		t.Errorf("ListResources: %v, %v", list, err)
	}
	if list, err = r.grpc.ListResources(ctx, &api.ListResourcesRequest{Watch: "hosts", PageSize: unary.MaxPageSize}); err != nil || len(list.GetResources()) != 3 {
		t.Errorf("ListResources, the largest page: %v, %v", list, err)
	}
	watches, err := r.grpc.ListWatches(ctx, &api.ListWatchesRequest{})
	if err != nil || len(watches.GetWatches()) != 3 {
		t.Errorf("ListWatches: %v, %v", watches, err)
	}
	watch, err := r.grpc.GetWatch(ctx, &api.GetWatchRequest{Watch: "notes"})
	if err != nil || !watch.GetWritable() || watch.GetCount() != 1 || watch.GetState() != "in_sync" || !watch.GetSince().IsValid() {
		t.Errorf("GetWatch: %v, %v", watch, err)
	}
	gone, err := r.grpc.DeleteResource(ctx, &api.DeleteResourceRequest{Watch: "notes", Key: "a"})
	if err != nil || !gone.GetDeleted() {
		t.Errorf("DeleteResource: %v, %v", gone, err)
	}
}

// TestGRPCKeys checks that keys that are not UTF-8 are sent in base64, in both
// directions.
func TestGRPCKeys(t *testing.T) {
	r := newAPIRig(t, Config{})
	put, err := r.grpc.PutResource(t.Context(), &api.PutResourceRequest{Watch: "notes", Key: "/wA=", KeyEncoding: "base64", Value: []byte("1")})
	if err != nil || put.GetResource().GetKey() != "/wA=" || put.GetResource().GetKeyEncoding() != "base64" {
		t.Fatalf("%v, %v", put, err)
	}
	r.get("/v1/watches/notes/resources/%FF%00").want(t, 200, `{"key":"/wA=","revision":"2","key_encoding":"base64","value":1}`+"\n")
	if _, err := r.grpc.DeleteResource(t.Context(), &api.DeleteResourceRequest{Watch: "notes", Key: "/wA=", KeyEncoding: "base64"}); err != nil {
		t.Error(err)
	}
}

func TestGRPCCodes(t *testing.T) {
	r := newAPIRig(t, Config{})
	if _, err := r.grpc.PutResource(t.Context(), &api.PutResourceRequest{Watch: "notes", Key: "a", Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	put := func(q *api.PutResourceRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := r.grpc.PutResource(ctx, q); return err }
	}
	list := func(q *api.ListResourcesRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := r.grpc.ListResources(ctx, q); return err }
	}
	get := func(q *api.GetResourceRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := r.grpc.GetResource(ctx, q); return err }
	}
	drop := func(q *api.DeleteResourceRequest) func(context.Context) error {
		return func(ctx context.Context) error { _, err := r.grpc.DeleteResource(ctx, q); return err }
	}
	for name, test := range map[string]struct {
		call    func(context.Context) error
		code    codes.Code
		message string
	}{
		"unknown watch":    {get(&api.GetResourceRequest{Watch: "host", Key: "a"}), codes.NotFound, `did you mean "hosts"?`},
		"no watch":         {list(&api.ListResourcesRequest{}), codes.NotFound, `there is no watch ""`},
		"unknown key":      {get(&api.GetResourceRequest{Watch: "notes", Key: "x"}), codes.NotFound, "no resource"},
		"bad encoding":     {get(&api.GetResourceRequest{Watch: "notes", Key: "x", KeyEncoding: "hex"}), codes.InvalidArgument, "base64"},
		"bad base64":       {get(&api.GetResourceRequest{Watch: "notes", Key: "?", KeyEncoding: "base64"}), codes.InvalidArgument, "not base64"},
		"not primed":       {list(&api.ListResourcesRequest{Watch: "silent"}), codes.Unavailable, "first complete snapshot"},
		"page size":        {list(&api.ListResourcesRequest{Watch: "notes", PageSize: 10001}), codes.InvalidArgument, "at most 10000"},
		"page token":       {list(&api.ListResourcesRequest{Watch: "notes", PageToken: "x"}), codes.InvalidArgument, "next_page_token"},
		"read-only put":    {put(&api.PutResourceRequest{Watch: "hosts", Key: "a", Value: []byte("1")}), codes.Unimplemented, "read-only"},
		"read-only delete": {drop(&api.DeleteResourceRequest{Watch: "hosts", Key: "a"}), codes.Unimplemented, "read-only"},
		"conflict":         {put(&api.PutResourceRequest{Watch: "notes", Key: "a", Value: []byte("1"), IfRevision: proto.Uint64(9)}), codes.Aborted, "is at revision 2"},
		"exists":           {put(&api.PutResourceRequest{Watch: "notes", Key: "a", Value: []byte("1"), IfRevision: proto.Uint64(0)}), codes.Aborted, "none was expected"},
		"delete conflict":  {drop(&api.DeleteResourceRequest{Watch: "notes", Key: "a", IfRevision: proto.Uint64(9)}), codes.Aborted, "is at revision 2"},
		"not JSON":         {put(&api.PutResourceRequest{Watch: "notes", Key: "a", Value: []byte("{")}), codes.InvalidArgument, "want JSON"},
		"too large":        {put(&api.PutResourceRequest{Watch: "notes", Key: "a", Value: []byte(`"` + strings.Repeat("x", notebookLimit) + `"`)}), codes.ResourceExhausted, "the limit is"},
		"far too large":    {put(&api.PutResourceRequest{Watch: "notes", Key: "a", Value: make([]byte, authz.MaxValue+1)}), codes.ResourceExhausted, "want at most"},
		"message limit":    {put(&api.PutResourceRequest{Watch: "notes", Key: "a", Value: make([]byte, rpc.MaxMessage+1)}), codes.ResourceExhausted, "want at most"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.call(t.Context())
			if status.Code(err) != test.code || !strings.Contains(err.Error(), test.message) {
				t.Errorf("got %.300v, want %s with %q", err, test.code, test.message)
			}
		})
	}
}

// TestGRPCHidesInternalErrors checks that internal errors of an upstream are not
// revealed.
func TestGRPCHidesInternalErrors(t *testing.T) {
	r := newAPIRig(t, Config{})
	r.notes.mu.Lock()
	r.notes.broken = errors.New("password of the database is wrong")
	r.notes.mu.Unlock()
	_, err := r.grpc.PutResource(t.Context(), &api.PutResourceRequest{Watch: "notes", Key: "a", Value: []byte("1")})
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "password") {
		t.Errorf("got %v", err)
	}
}
