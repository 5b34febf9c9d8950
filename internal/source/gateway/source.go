package gateway

import (
	"context"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/stream"
)

// Source follows one watch of a gateway. It is a [stream.Source], for one
// goroutine at a time.
type Source struct {
	// Static after construction.
	upstream *Upstream
	watch    string
	view     client.View
	query    int // length of its part of the query

	// Owned by Watch.
	faulty bool // the last call ended by a fault of this watch alone

	// How often in a row what the sink has could not be verified, and how often since the state was gone. Guarded by the mu of
	// its member.
	unverified, gone int
	repairs          repairs
}

var _ stream.Source = (*Source)(nil)

// Close tells the upstream that the source will not be watched again. It must not be
// watched now.
func (s *Source) Close() {
	s.upstream.mu.Lock()
	defer s.upstream.mu.Unlock()
	s.upstream.sources--
}

// Watch implements [stream.Source].
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	r := newReader(ctx, s, resume, sink)
	if err := s.upstream.wait(ctx, r); err != nil {
		return err
	}
	m := &member{source: s, alone: s.faulty, ended: make(chan struct{}), reader: r}
	c := s.upstream.join(m)
	select {
	case <-m.ended:
	case <-ctx.Done():
		m.end(context.Cause(ctx), false)
	}
	c.leave(m)
	s.faulty = m.own && ctx.Err() == nil // a sink also fails when ctx ends
	return m.err
}
