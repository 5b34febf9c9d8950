package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/watchtide/watchtide/stream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// markerPatience is how long a streaming list may pause. A server without
// support for it sends the objects as well, and then nothing for a minute.
const markerPatience = 10 * time.Second

// errNoMarker: the server has no streaming list.
var errNoMarker = errors.New("no marker behind the initial events")

// snapshot sends all objects and returns the watch that continues from there.
// During a Watch call, the watch reports meanwhile that it is not fresh.
func (f *follower) snapshot(ctx context.Context) (*watchCall, error) {
	again := f.caughtUp
	if again {
		if err := f.sinkError(f.sink.Status(stream.Resyncing, "the server compacted the position of the watch: listing again")); err != nil {
			return nil, err
		}
	}
	call, err := f.fromNothing(ctx)
	if err != nil {
		return nil, err
	}
	f.listed, f.listedAt = time.Now(), f.place.Revision
	if again {
		err = f.sinkError(f.sink.Status(stream.InSync, ""))
	}
	if err != nil {
		call.close()
		return nil, err
	}
	return call, nil
}

// fromNothing uses the streaming list, or else a list in pages.
func (f *follower) fromNothing(ctx context.Context) (*watchCall, error) {
	f.place.Revision, f.seen = 0, 0
	if f.source.paged || !f.client.http2.Load() {
		return f.paged(ctx)
	}
	call, err := f.streamed(ctx)
	if !errors.Is(err, errNoMarker) {
		return call, err
	}
	call, err = f.paged(ctx)
	if err == nil {
		f.source.paged = true
		f.source.config.Logger.Info("the Kubernetes server has no streaming list: reading in pages from now on",
			"resource", f.source.config.name())
	}
	return call, err
}

// begins starts a snapshot in the sink.
func (f *follower) begins() error { return f.sinkError(f.sink.Reset(f.place.Epoch)) }

// streamed reads a streaming list up to its marker.
func (f *follower) streamed(ctx context.Context) (*watchCall, error) {
	call, err := f.client.watch(ctx, f.client.query("sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan"))
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return nil, fmt.Errorf("%w: %w", errNoMarker, err)
	}
	if err != nil {
		return nil, err
	}
	if err := f.untilMarker(call); err != nil {
		call.close()
		return nil, err
	}
	return call, nil
}

func (f *follower) untilMarker(call *watchCall) error {
	if err := f.begins(); err != nil {
		return err
	}
	patience := time.NewTimer(markerPatience)
	defer patience.Stop()
	for {
		e, err := call.next(patience.C)
		if err != nil {
			return cutShort(call, err)
		}
		at, err := f.apply(e)
		switch {
		case err != nil:
			return err
		case at.initial:
			return f.commit(at.revision)
		case at.bookmark:
			return errNoMarker // one of the bookmarks that come each minute
		}
		patience.Reset(markerPatience)
	}
}

// cutShort interprets the end of the events before the marker.
func cutShort(call *watchCall, err error) error {
	switch {
	case errors.Is(err, errQuiet), errors.Is(err, io.EOF) && call.ranOut():
		return errNoMarker
	case errors.Is(err, io.EOF):
		return errors.New("the server ended the watch in the middle of the snapshot")
	}
	return err
}

// paged reads a list, and returns a watch from there.
func (f *follower) paged(ctx context.Context) (*watchCall, error) {
	revision, err := f.client.list(ctx, f.begins, func(r stream.Resource) error { return f.sinkError(f.sink.Upsert(r)) })
	if err != nil {
		return nil, err
	}
	if err := f.commit(revision); err != nil {
		return nil, err
	}
	return f.client.watch(ctx, f.client.query("resourceVersion", strconv.FormatUint(revision, 10)))
}
