package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// maxRetryWait bounds the retry_ms of a goodbye.
const maxRetryWait = 30 * time.Second

var errClosed = errors.New("grpc: the source is closed")

// Source follows one watch of one server. It is a [stream.Source].
//
// Watch is called by one goroutine at a time; Close by any, at any time.
type Source struct {
	// Static after construction.
	config Config
	epochs epochs
	gate   *adapter.Gate

	// Owned by Watch.
	notBefore time.Time // the earliest time of the next call
}

var _ stream.Source = (*Source)(nil)

// New returns a Source; it connects when Watch is called. The error reports an
// invalid configuration.
func New(c Config) (*Source, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.setDefaults()
	_, end, err := c.connect()
	if err != nil {
		return nil, fmt.Errorf("grpc: address %q: %w", c.Address, err)
	}
	end()
	return &Source{config: c, gate: adapter.NewGate(errClosed), epochs: newEpochs(&c)}, nil
}

// Close ends a running Watch call and waits for it. Later ones fail. A Conn
// that the Source was given stays open.
func (s *Source) Close() { s.gate.Close() }

// Watch implements [stream.Source].
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	ctx, end, leave := s.gate.Enter(ctx)
	defer leave()
	if err := adapter.PauseUntil(ctx, s.notBefore); err != nil {
		return err
	}
	conn, disconnect, err := s.config.connect()
	if err != nil {
		return s.failed(err)
	}
	defer disconnect()
	return s.follow(ctx, end, conn, newReader(s, resume, sink))
}

// follow makes the call and reads it to its end.
func (s *Source) follow(ctx context.Context, end context.CancelCauseFunc, conn grpc.ClientConnInterface, r *reader) error {
	stall := s.startStall(end)
	defer stall.stop()
	codec := newCodec()
	largest := stream.LargestMessage(r.Sink, s.config.MaxMessageBytes)
	call, err := s.call(ctx, conn, r.position, codec, largest)
	if err != nil {
		return s.ended(ctx, err, r, codec)
	}
	for {
		stall.begin()
		m, err := call.Recv()
		stall.stop()
		if err != nil {
			if adapter.TooLarge(err) && largest < s.config.MaxMessageBytes {
				stream.RefuseMessage(r.Sink, largest)
			}
			return s.ended(ctx, err, r, codec)
		}
		if err := r.receive(m); err != nil {
			return s.finish(r, err)
		}
	}
}

func (s *Source) call(ctx context.Context, conn grpc.ClientConnInterface, position string, codec *codec, largest int) (grpc.ServerStreamingClient[watchtidev1.WatchListResponse], error) {
	outgoing, err := s.config.outgoing()
	if err != nil {
		return nil, err
	}
	ctx = metadata.NewOutgoingContext(ctx, metadata.New(outgoing))
	return watchtidev1.NewWatchServiceClient(conn).WatchList(ctx, &watchtidev1.WatchListRequest{
		Watch: s.config.Watch, Position: position, Prefix: s.config.Prefix,
	}, s.config.callOptions(codec, largest)...)
}

// callOptions bound the messages of a call, except those of the same process.
func (c *Config) callOptions(codec *codec, largest int) []grpc.CallOption {
	options := []grpc.CallOption{grpc.ForceCodecV2(codec)}
	if c.Conn == nil {
		options = append(options, grpc.MaxCallRecvMsgSize(largest))
	}
	return options
}

// finish returns the error of Watch once the reader is done: nil after an
// orderly goodbye.
func (s *Source) finish(r *reader, err error) error {
	s.notBefore = time.Now().Add(min(r.retry, maxRetryWait))
	if errors.Is(err, errGoodbye) {
		return nil
	}
	return err
}

// ended returns the error of Watch when there is nothing more to receive.
func (s *Source) ended(ctx context.Context, err error, r *reader, codec *codec) error {
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return cause
	case errors.Is(err, io.EOF):
		return nil
	case codec.bad != nil:
		return r.Invalid("%v", codec.bad)
	case r.refusedResume(status.Code(err)):
		return fmt.Errorf("%w: %w", stream.ErrUnresumable, s.failed(err))
	}
	return s.failed(err)
}

// failed adds the upstream to a gRPC error. It contains the upstream's own
// text.
func (s *Source) failed(err error) error {
	outgoing, _ := s.config.outgoing() // an unreadable token was not sent
	message := adapter.HideSecret(err.Error(), maps.Values(outgoing))
	return adapter.NewFailure(err, fmt.Sprintf("grpc %s, watch %q: %s%s", s.config.target(), s.config.Watch, message, s.config.hint(err)))
}

// hint suggests a remedy, where the error indicates one.
func (c *Config) hint(err error) string {
	switch code := status.Code(err); {
	case code == codes.Unauthenticated:
		return "; want a token in token_file, or metadata, that it accepts"
	case code == codes.PermissionDenied:
		return "; want a token, or metadata, that may read this watch"
	case code == codes.Unimplemented:
		return "; want a server of watchtide.v1.WatchService"
	case code == codes.ResourceExhausted:
		return "; want a larger maximum message size if it is an event that is too large"
	case c.TLS == nil && strings.Contains(err.Error(), "error reading server preface"):
		return "; want TLS if that is what the server speaks"
	}
	return ""
}
