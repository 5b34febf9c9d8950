package unary

import (
	"bytes"
	"context"
	"slices"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/internal/view"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// listWindow answers a list of a window: all of it, in its order.
func (s *Service) listWindow(ctx context.Context, r *api.ListResourcesRequest, part authz.Part, w *watch.Watch) (*api.ListResourcesResponse, error) {
	switch {
	case r.GetPageSize() != 0:
		return nil, problem.BadParameter("page_size", "a window has no pages: want limit and offset").OnWatch(w.Name())
	case r.GetPageToken() != "":
		return nil, problem.BadParameter("page_token", "a window has no pages: want limit and offset").OnWatch(w.Name())
	}
	v := w.Snapshot()
	if !v.Primed() { // an on-demand watch that has just stopped
		return nil, s.Lookup.NotPrimed(w)
	}
	var page log.Page
	var about storage.Window
	answer := limits.AnswerOf(ctx)
	err := answer.Read(ctx, expectedPage(v, v.Count()), func() (n int64, err error) {
		page, about = w.Window()
		inOrder(page.Resources, part.Definition())
		return bytesOfPage(page), nil
	})
	if err != nil {
		return nil, problem.Of(err).OnWatch(w.Name())
	}
	if page.Position.Epoch == "" {
		return nil, s.Lookup.NotPrimed(w)
	}
	out := pageMessage(w.Name(), page)
	out.Total, out.Before, out.Next = new(uint64(about.Total)), new(uint64(about.Before)), about.Next
	return out, nil
}

// inOrder sorts the resources of a window.
func inOrder(resources []stream.Resource, d *view.Definition) {
	items := make(map[string][]byte, len(resources))
	for _, r := range resources {
		items[r.Key] = append(d.AppendSortKey(nil, r), r.Key...)
	}
	slices.SortFunc(resources, func(a, b stream.Resource) int { return bytes.Compare(items[a.Key], items[b.Key]) })
}
