package grpc

import (
	"errors"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc/codes"
)

// reader turns the messages of one call into the calls of a Sink.
//
// Owned by the goroutine that runs Watch.
type reader struct {
	*adapter.Reader
	position string        // from which the upstream is asked to resume; empty: nothing
	retry    time.Duration // the wait requested by goodbye
}

// errGoodbye ends a call in good order.
var errGoodbye = errors.New("goodbye")

func newReader(s *Source, resume stream.Resume, sink stream.Sink) *reader {
	from, resumes := s.epochs.resume(resume)
	r := &reader{Reader: adapter.NewReader(adapter.ReaderConfig{
		Sink: sink, Watch: s.config.Watch, Prefix: s.config.Prefix,
		Where:   fmt.Sprintf("grpc %s, watch %q", s.config.target(), s.config.Watch),
		Unnamed: s.epochs.fallback, Enter: s.epochs.enter,
	}, from)}
	if resumes {
		r.position = from.String()
	}
	_, _, _ = r.Begin() // nothing staged is in the way
	return r
}

// receive handles one message.
func (r *reader) receive(m *pb.WatchListResponse) error {
	if g := m.GetGoodbye(); g != nil {
		return r.goodbye(g)
	}
	return r.Receive(decode(m))
}

// goodbye ends the call: in good order, unless the upstream no longer wants
// to serve us.
func (r *reader) goodbye(m *pb.Goodbye) error {
	r.retry = time.Duration(m.GetRetryMs()) * time.Millisecond
	switch reason := stream.GoodbyeReason(m.GetReason()); reason {
	case stream.GoodbyeMaxAge:
		r.retry = 0
	case stream.GoodbyeTokenExpired, stream.GoodbyeRevoked, stream.GoodbyeWatchRemoved:
		return fmt.Errorf("%s: goodbye, %s", r.Where, reason)
	}
	return errGoodbye
}

// refusedResume reports that the upstream refused to resume.
func (r *reader) refusedResume(code codes.Code) bool {
	if r.position == "" || r.Events() > 0 {
		return false
	}
	return code == codes.InvalidArgument || code == codes.OutOfRange || code == codes.FailedPrecondition
}
