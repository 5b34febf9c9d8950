package consulsource

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/consul/proto-public/pbresource"

	"github.com/watchtide/watchtide/stream"
)

var (
	errClosed = errors.New("consulsource: the source is closed")
	// errRotated ends a connection whose watch was opened with a token that is no
	// longer the one of the file.
	errRotated = errors.New("consulsource: the ACL token was replaced")
)

// Source follows one collection of resources. It is a [stream.Source].
//
// Watch is called by one goroutine at a time; Close by any, at any time.
type Source struct {
	// Static after construction.
	config Config
	typ    *pbresource.Type // never handed out: see Source.ofType
	closed context.Context
	close  context.CancelFunc

	// Held by Watch while it runs, so that Close can wait for it.
	running sync.Mutex

	// Owned by Watch.
	epochs epochs
	memory memory
}

var (
	_ stream.Source            = (*Source)(nil)
	_ stream.DeletesUnnumbered = (*Source)(nil)
)

// New returns a Source; it connects when Watch is called. The error says what
// is wrong with the configuration. Whether the token can be read is seen later:
// its file may come later.
func New(c Config) (*Source, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.setDefaults()
	conn, err := c.dial()
	if err != nil {
		return nil, fmt.Errorf("consulsource: address %q: %w", c.Address, err)
	}
	_ = conn.Close()
	s := &Source{config: c, epochs: newEpochs(&c)}
	s.typ, _ = ParseType(c.Type)
	s.closed, s.close = context.WithCancel(context.Background())
	return s, nil
}

// Close ends a running Watch call and waits for it. Later ones fail.
func (s *Source) Close() {
	s.close()
	s.running.Lock()
	defer s.running.Unlock()
}

// DeletesUnnumbered implements [stream.DeletesUnnumbered]: Consul tells of a
// deletion under the last version that the resource had.
func (s *Source) DeletesUnnumbered() bool { return true }

// Watch implements [stream.Source]. Consul cannot resume, so that every
// connection begins with a snapshot; in the same order, unless it went back.
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	s.running.Lock()
	defer s.running.Unlock()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(s.closed, func() { end(errClosed) })()

	for {
		err := s.connect(ctx, resume, sink)
		if errors.Is(err, stream.ErrBehind) || errors.Is(err, stream.ErrOrder) {
			// Whoever noticed it: what is there now is another order.
			s.memory.broken = true
		}
		if !errors.Is(err, errRotated) {
			return err
		}
	}
}

// connect follows the collection with one connection and one token.
func (s *Source) connect(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	conn, err := s.config.dial()
	if err != nil {
		return s.config.failed(err, "")
	}
	link, err := s.open(ctx, conn)
	if err != nil {
		_ = conn.Close()
		return err
	}
	f := newFollower(s, link, resume, sink)
	err = f.run()
	link.close(err)
	_ = conn.Close()
	link.running.Wait()
	return err
}

// ofType returns the type for a call: nothing of a call may be shared.
func (s *Source) ofType() *pbresource.Type {
	return &pbresource.Type{Group: s.typ.Group, GroupVersion: s.typ.GroupVersion, Kind: s.typ.Kind}
}
