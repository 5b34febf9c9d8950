package consul

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

var (
	// errRotated ends a connection whose watch was opened with a token that is no
	// longer in the file.
	errRotated = errors.New("consul: the ACL token was replaced")
	// errEnded ends one whose watch the server ended in an orderly way.
	errEnded = errors.New("consul: the server ended the watch")
)

// Source follows one collection of resources. It is a [stream.Source]. It has
// no open connection except while Watch runs, which one goroutine at a time may
// call.
type Source struct {
	// Static after construction.
	config Config
	typ    *pbresource.Type // never handed out: see Source.ofType

	// Owned by Watch.
	epochs     epochs
	checkpoint checkpoint
}

var (
	_ stream.Source            = (*Source)(nil)
	_ stream.DeletesUnnumbered = (*Source)(nil)
)

// New returns a Source; it connects when Watch is called. The error reports an
// invalid configuration. Whether the token can be read is checked later: its
// file may not exist yet.
func New(c Config) (*Source, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.setDefaults()
	conn, err := c.dial(c.MaxMessageBytes)
	if err != nil {
		return nil, fmt.Errorf("consul: address %q: %w", c.Address, err)
	}
	_ = conn.Close()
	s := &Source{config: c, epochs: newEpochs(&c)}
	s.typ, _ = ParseType(c.Type)
	return s, nil
}

// DeletesUnnumbered implements [stream.DeletesUnnumbered]: Consul reports a
// deletion under the last version that the resource had.
func (s *Source) DeletesUnnumbered() bool { return true }

// Watch implements [stream.Source]. Consul cannot resume, so every connection
// begins with a snapshot; in the same order, unless the server went back.
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	for {
		err := s.connect(ctx, resume.Epoch, sink)
		if errors.Is(err, stream.ErrBehind) || errors.Is(err, stream.ErrOrder) {
			// Whether the source or the sink noticed it: the present state is another order.
			s.checkpoint.broken = true
		}
		switch {
		case errors.Is(err, errRotated):
			continue
		case errors.Is(err, errEnded):
			return nil
		}
		return err
	}
}

// connect follows the collection with one connection and one token. at is the epoch that the watch has.
func (s *Source) connect(ctx context.Context, at string, sink stream.Sink) error {
	largest := stream.LargestMessage(sink, s.config.MaxMessageBytes)
	conn, err := s.config.dial(largest)
	if err != nil {
		return s.config.failed(err, "")
	}
	c, err := s.open(ctx, conn)
	if err != nil {
		_ = conn.Close()
		return err
	}
	f := newFollower(s, c, at, sink)
	err = f.run()
	if adapter.TooLarge(err) && largest < s.config.MaxMessageBytes {
		stream.RefuseMessage(sink, largest)
	}
	c.close(err)
	_ = conn.Close()
	c.running.Wait()
	return err
}

// ofType returns the type for a call: calls must not share anything.
func (s *Source) ofType() *pbresource.Type {
	return &pbresource.Type{Group: s.typ.Group, GroupVersion: s.typ.GroupVersion, Kind: s.typ.Kind}
}
