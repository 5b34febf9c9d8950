package grpc

import (
	"context"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// stall ends a call in which nothing arrives for too long. It runs while the
// source waits for the upstream, not while the upstream's events are applied.
type stall struct {
	after time.Duration
	timer *time.Timer // nil: never
}

func (s *Source) startStall(end context.CancelCauseFunc) stall {
	after := s.config.StallAfter
	if after == 0 {
		return stall{}
	}
	err := fmt.Errorf("%w: grpc %s, watch %q: nothing received for %v",
		stream.ErrStalled, s.config.target(), s.config.Watch, after)
	return stall{after: after, timer: time.AfterFunc(after, func() { end(err) })}
}

func (s stall) begin() {
	if s.timer != nil {
		s.timer.Reset(s.after)
	}
}

func (s stall) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
