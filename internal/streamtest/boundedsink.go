package streamtest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/watchtide/watchtide/stream"
)

// ErrFull ends the Watch call whose source holds more than a [BoundedSink] allows.
var ErrFull = errors.New("the source holds too much")

// BoundedSink is a [SinkRecorder] that allows a source to hold a number of bytes, as a watch with
// a memory ceiling does. What is staged is not counted.
type BoundedSink struct {
	*SinkRecorder
	most       int64
	end        context.CancelCauseFunc
	held, peak atomic.Int64
}

// NewBoundedSink returns a sink that allows so many bytes, and the context for a Watch call, which
// ends with ErrFull beyond them.
func NewBoundedSink(ctx context.Context, most int64) (*BoundedSink, context.Context) {
	ctx, end := context.WithCancelCause(ctx)
	return &BoundedSink{SinkRecorder: NewSinkRecorder(stream.Resume{}, nil), most: most, end: end}, ctx
}

// Charge implements [stream.SinkExtension].
func (s *BoundedSink) Charge(bytes int64) {
	held := s.held.Add(bytes)
	s.peak.Store(max(s.peak.Load(), held))
	if held > s.most {
		s.end(ErrFull)
	}
}

// MaxBytes implements [stream.SinkExtension].
func (s *BoundedSink) MaxBytes() int64 { return s.most }

// Held returns how many bytes are held, and how many were at most.
func (s *BoundedSink) Held() (now, peak int64) { return s.held.Load(), s.peak.Load() }

// Stop ends the context.
func (s *BoundedSink) Stop() { s.end(nil) }
