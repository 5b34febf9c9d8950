package gateway

import (
	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// reader turns the events of a watch into the calls of a Sink. It outlives requests:
// the next one completes what the previous one staged up to its last position.
//
// Guarded by the mu of its member.
type reader struct{ *adapter.Reader }

func newReader(s *Source, resume stream.Resume, sink stream.Sink) *reader {
	var from stream.Position
	if resume.Epoch != "" {
		from = stream.Position{
			Watch: s.watch, Epoch: resume.Epoch, Upserts: resume.Revision, AsOf: resume.Revision, DeletesBehind: resume.DeletesBehind,
		}
	}
	return &reader{adapter.NewReader(adapter.ReaderConfig{Sink: sink, Watch: s.watch, Where: s.where()}, from)}
}

// receive handles one event.
func (r *reader) receive(e client.Event) error { return r.Receive(decode(&e, r.Watch)) }
