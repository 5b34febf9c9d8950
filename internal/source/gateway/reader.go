package gateway

import (
	"context"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// reader turns the events of a watch into the calls of a Sink. It outlives requests:
// the next one completes what the previous one staged up to its last position.
//
// Guarded by the mu of its member.
type reader struct {
	*adapter.Reader
	ctx     context.Context // of Watch
	source  *Source
	changed bool    // what has changed since the position has come, or a part of it
	waiting waiting // from an end_of_snapshot that asks to verify on, until that is done
	beside  *beside // the stream of the request under way
}

func newReader(ctx context.Context, s *Source, resume stream.Resume, sink stream.Sink) *reader {
	var from stream.Position
	if resume.Epoch != "" {
		from = stream.Position{
			Watch: s.watch, Epoch: resume.Epoch, Upserts: resume.Revision, AsOf: resume.Revision, DeletesBehind: resume.DeletesBehind,
		}
	}
	return &reader{Reader: adapter.NewReader(adapter.ReaderConfig{Sink: sink, Watch: s.watch, Where: s.where()}, from), ctx: ctx, source: s}
}

// receive handles one event.
func (r *reader) receive(e client.Event) error {
	switch {
	case len(r.waiting.events) > 0 || e.Type == client.EndOfSnapshot && e.Verify:
		return r.wait(e)
	case e.Type == client.EndOfSnapshot:
		r.source.unverified, r.source.gone, r.source.repairs.differing = 0, 0, false
	case e.Type == client.Upsert:
		r.changed = true
	case e.Type == client.Status && e.State == client.CatchingUp:
		r.changed = false
	}
	if err := r.Receive(decode(&e, r.Watch)); err != nil {
		return err
	}
	return r.compare(&e)
}
