package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxRetryWait bounds what a server may request with Retry-After.
const maxRetryWait = 30 * time.Second

// Source follows the objects of one resource. It is a [stream.Source].
//
// Watch is called by one goroutine at a time; Close by any, at any time.
type Source struct {
	// Static after construction.
	config Config
	gate   *adapter.Gate

	// Owned by Watch.
	epochs    epochs
	paged     bool      // the server has no streaming list
	notBefore time.Time // the earliest time of the next call
}

var _ stream.Source = (*Source)(nil)

// New returns a Source; it reads the kubeconfig and connects when Watch is
// called. The error reports an invalid configuration.
func New(c Config) (*Source, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.setDefaults()
	return &Source{config: c, gate: adapter.NewGate(errClosed)}, nil
}

// Close ends a running Watch call and waits for it. Later ones fail.
func (s *Source) Close() { s.gate.Close() }

// Watch implements [stream.Source].
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	ctx, _, leave := s.gate.Enter(ctx)
	defer leave()
	if err := adapter.PauseUntil(ctx, s.notBefore); err != nil {
		return err
	}
	c, err := newClient(&s.config, func(bytes int64) { sink.Charge(bytes) })
	if err != nil {
		return fmt.Errorf("kubernetes: %w", err)
	}
	defer c.close()
	f := &follower{source: s, client: c, sink: sink, place: resume}
	return s.ended(ctx, f, f.run(ctx))
}

// ended returns the error of Watch.
func (s *Source) ended(ctx context.Context, f *follower, err error) error {
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case f.refused != nil:
		if errors.Is(f.refused, stream.ErrBehind) {
			s.epochs.wentBack(f.place.Epoch)
		}
		return f.refused
	case cause != nil:
		return cause
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		s.notBefore = time.Now().Add(min(time.Duration(seconds)*time.Second, maxRetryWait))
	}
	return adapter.NewFailure(err, fmt.Sprintf("kubernetes %s%s, %s: %s%s",
		f.client.base.Redacted(), adapter.Through(f.client.proxy(&http.Request{URL: f.client.base})), s.config.name(), f.client.sent.hide(err.Error()), hint(err)))
}
