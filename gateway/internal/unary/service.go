package unary

import (
	"context"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/views"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Service is watchtide.v1.WatchService: over gRPC, and in this process behind the
// unary API. Its errors are problems, which are also gRPC statuses.
//
// All methods may be called from any goroutine.
type Service struct {
	api.UnimplementedWatchServiceServer
	// Static after construction.
	Instance string
	Lookup   *authz.Lookup
	Refused  func(*limits.Refusal) *problem.Problem // the answer to a list whose view was not opened
}

// ListWatches implements api.WatchServiceServer.
func (s *Service) ListWatches(ctx context.Context, _ *api.ListWatchesRequest) (*api.ListWatchesResponse, error) {
	watches := s.Lookup.All(ctx)
	if err := limits.AnswerOf(ctx).Reserve(ctx, watchBytes*int64(len(watches))); err != nil {
		return nil, err
	}
	out := api.ListWatchesResponse{Instance: s.Instance}
	for _, w := range watches {
		out.Watches = append(out.Watches, watchMessage(ctx, w))
	}
	return &out, nil
}

// GetWatch implements api.WatchServiceServer.
func (s *Service) GetWatch(ctx context.Context, r *api.GetWatchRequest) (*api.Watch, error) {
	w, p := s.Lookup.Find(ctx, r.GetWatch(), limits.AnswerOf(ctx).Client().String())
	if p != nil {
		return nil, p
	}
	return watchMessage(ctx, w), nil
}

func watchMessage(ctx context.Context, w authz.Handle) *api.Watch {
	d := w.Describe()
	return &api.Watch{
		Name:        w.Name(),
		Source:      d.Source,
		State:       d.Status.State.String(),
		Since:       timestamppb.New(d.Status.Since),
		Reason:      limits.ReasonFor(ctx, d.Status),
		Epoch:       d.Epoch,
		Revision:    d.Revision,
		Count:       uint64(d.Count),
		Bytes:       uint64(d.Bytes),
		Subscribers: uint64(d.Subscribers),
		Writable:    w.MayWrite(),
		Upstream:    upstreamMessage(ctx, d.Upstream),
		Changes:     d.Changes,
		Partial:     d.Partial,
	}
}

func upstreamMessage(ctx context.Context, u watch.Upstream) *api.Upstream {
	return &api.Upstream{
		Connected:   u.Connected,
		Since:       moment(u.Since),
		Attempts:    uint32(u.Attempts),
		LastError:   limits.LastErrorFor(ctx, u),
		LastErrorAt: moment(u.LastErrorAt),

		NextAttemptAt: moment(u.NextAttemptAt),
	}
}

// moment returns nil for the zero time.
func moment(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// DefaultPageSize is the number of resources in a page unless the request says
// otherwise.
const DefaultPageSize = 1000

// ListResources implements api.WatchServiceServer.
func (s *Service) ListResources(ctx context.Context, r *api.ListResourcesRequest) (*api.ListResourcesResponse, error) {
	size := int(r.GetPageSize())
	if size == 0 {
		size = DefaultPageSize
	}
	if size > MaxPageSize {
		return nil, problem.BadParameter("page_size", "page_size %d: want at most %d", size, MaxPageSize)
	}
	part, p := s.part(ctx, r)
	if p != nil {
		return nil, p
	}
	if r.GetPageToken() == "" && part.ByKeys() {
		page, ok, err := s.PageByKeys(ctx, part, size)
		switch {
		case err != nil:
			return nil, err
		case ok:
			setTag(ctx, page.Tag)
			return pageMessage(part.Name(), page), nil
		}
	}
	w, err := s.Open(ctx, part)
	switch {
	case err != nil:
		return nil, err
	case part.IsWindow():
		return s.listWindow(ctx, r, part, w)
	}
	var page log.Page
	answer := limits.AnswerOf(ctx)
	err = answer.Read(ctx, expectedPage(w.Snapshot(), size), func() (n int64, err error) {
		page, err = w.Page(r.GetPageToken(), size)
		return bytesOfPage(page), err
	})
	if err != nil {
		return nil, problem.Of(err).OnWatch(w.Name())
	}
	if page.Position.Epoch == "" { // an on-demand watch that has just stopped
		return nil, s.Lookup.NotPrimed(w)
	}
	setTag(ctx, page.Tag)
	return pageMessage(w.Name(), page), nil
}

// PageByKeys returns the page of a part that is one by keys; false: it takes a view.
func (s *Service) PageByKeys(ctx context.Context, part authz.Part, size int) (page log.Page, ok bool, err error) {
	if p := part.Prime(ctx); p != nil {
		return page, false, p
	}
	answer := limits.AnswerOf(ctx)
	err = answer.Read(ctx, resourceBytes*int64(len(part.Definition().Keys())), func() (n int64, err error) {
		page, ok, err = part.Page(size, func(work func()) error { return answer.Scan(ctx, work) })
		return bytesOfPage(page), err
	})
	if err != nil {
		return page, false, problem.Of(err).OnWatch(part.Name())
	}
	return page, ok, nil
}

// Open returns the watch or the view that is a part of a watch, once it is primed.
func (s *Service) Open(ctx context.Context, part authz.Part) (*watch.Watch, error) {
	client := limits.AnswerOf(ctx).Client()
	w, err := part.Open(views.Request{Client: client.String()})
	if refused := limits.OfView(part.Name(), client, err); refused != nil {
		return nil, s.Refused(refused)
	}
	if err != nil {
		return nil, err
	}
	if p := s.Lookup.Prime(ctx, w); p != nil {
		return nil, p
	}
	return w, nil
}

func pageMessage(watch string, p log.Page) *api.ListResourcesResponse {
	out := &api.ListResourcesResponse{
		Watch:         watch,
		Position:      p.Position.String(),
		Revision:      p.Revision,
		Count:         uint64(p.Count),
		Resources:     make([]*api.Resource, len(p.Resources)),
		NextPageToken: p.Next,
	}
	for i, r := range p.Resources {
		out.Resources[i] = ResourceMessage(r)
	}
	return out
}

// ResourceMessage makes the message of a resource; it does not copy the value.
func ResourceMessage(r stream.Resource) *api.Resource {
	key, encoding := stream.WireKey(r.Key)
	return &api.Resource{
		Key: key, KeyEncoding: encoding,
		Revision: r.Revision,
		Value:    r.Value, Encoding: r.Encoding,
	}
}

// GetResource implements api.WatchServiceServer.
func (s *Service) GetResource(ctx context.Context, r *api.GetResourceRequest) (*api.Resource, error) {
	key, err := stream.KeyFromWire(r.GetKey(), r.GetKeyEncoding())
	if err != nil {
		return nil, KeyProblem(r.GetKey(), err)
	}
	part, p := s.part(ctx, r)
	if p != nil {
		return nil, p
	}
	if p := part.Prime(ctx); p != nil {
		return nil, p
	}
	var found authz.Shown
	ok := false
	answer := limits.AnswerOf(ctx)
	err = answer.Read(ctx, resourceBytes, func() (n int64, err error) {
		// Evaluating a filter can take as long as reading a whole watch.
		found, ok, err = part.Get(key, func(work func()) error { return answer.Scan(ctx, work) })
		return bytesOfResource(found.Resource), err
	})
	switch {
	case err != nil:
		return nil, problem.Of(err).OnWatch(part.Name())
	case !ok:
		return nil, problem.New(http.StatusNotFound, "watch %q has no resource with the key %q", part.Name(), key).OnWatch(part.Name()).OnKey(key)
	}
	setTag(ctx, found.Tag)
	return ResourceMessage(found.Resource), nil
}

// PutResource implements api.WatchServiceServer.
func (s *Service) PutResource(ctx context.Context, r *api.PutResourceRequest) (*api.PutResourceResponse, error) {
	if len(r.GetValue()) > authz.MaxValue {
		return nil, problem.New(http.StatusRequestEntityTooLarge, "the value has %d bytes: want at most %d", len(r.GetValue()), authz.MaxValue)
	}
	w, key, p := s.writable(ctx, r.GetWatch(), r.GetKey(), r.GetKeyEncoding())
	if p != nil {
		return nil, p
	}
	stored, created, err := w.Put(ctx, stream.PutRequest{
		Key: key, Value: r.GetValue(), IfRevision: r.IfRevision, ValidateOnly: r.GetValidateOnly(),
		Client: limits.AnswerOf(ctx).Client().String(),
	})
	if err != nil {
		return nil, writeError(w, key, err)
	}
	setTag(ctx, stored.Tag)
	return &api.PutResourceResponse{Resource: ResourceMessage(stored.Resource), Created: created}, nil
}

// DeleteResource implements api.WatchServiceServer.
func (s *Service) DeleteResource(ctx context.Context, r *api.DeleteResourceRequest) (*api.DeleteResourceResponse, error) {
	w, key, p := s.writable(ctx, r.GetWatch(), r.GetKey(), r.GetKeyEncoding())
	if p != nil {
		return nil, p
	}
	deleted, err := w.Delete(ctx, stream.DeleteRequest{
		Key: key, IfRevision: r.IfRevision, ValidateOnly: r.GetValidateOnly(),
		Client: limits.AnswerOf(ctx).Client().String(),
	})
	if err != nil {
		return nil, writeError(w, key, err)
	}
	return &api.DeleteResourceResponse{Deleted: deleted}, nil
}

// writable returns the watch and the key of a write.
func (s *Service) writable(ctx context.Context, watch, wireKey, encoding string) (authz.Handle, string, *problem.Problem) {
	key, err := stream.KeyFromWire(wireKey, encoding)
	if err != nil {
		return authz.Handle{}, "", KeyProblem(wireKey, err)
	}
	w, p := s.Lookup.Find(ctx, watch, limits.AnswerOf(ctx).Client().String())
	if p == nil {
		p = CheckWrite(ctx, w)
	}
	return w, key, p
}

// CheckWrite returns an error if the watch cannot be written, or not with the credential of the
// request.
func CheckWrite(ctx context.Context, w authz.Handle) *problem.Problem {
	if !w.Writable() {
		return ReadOnly(w.Name())
	}
	return w.Writes(ctx)
}

// writeError turns an error of a Writer into one that names the resource. An error
// that is not part of the contract keeps its text for the log only.
func writeError(w authz.Handle, key string, err error) error {
	p := problem.Of(err)
	if p.Status == http.StatusInternalServerError {
		return err
	}
	return p.OnWatch(w.Name()).OnKey(key)
}

const (
	// pageBytes is the most bytes of keys and values in a page, unless its only
	// resource has more.
	pageBytes = 3 << 20
	// resourceBytes is what a resource takes in an answer besides its key and its
	// value.
	resourceBytes = 256
	// watchBytes is what one watch takes in the list of watches.
	watchBytes = 1 << 10
)

// expectedPage is the most bytes that a page of a watch takes, unless it has
// large resources.
func expectedPage(v log.Snapshot, size int) int64 {
	return min(pageBytes, v.Bytes()) + resourceBytes*int64(min(size, v.Count()))
}

func bytesOfPage(p log.Page) int64 {
	n := int64(0)
	for i := range p.Resources {
		n += bytesOfResource(p.Resources[i])
	}
	return n
}

func bytesOfResource(r stream.Resource) int64 {
	return resourceBytes + int64(len(r.Key)+len(r.Value))
}
