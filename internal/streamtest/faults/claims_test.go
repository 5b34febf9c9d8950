package faults

import (
	"context"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// counting is a source that counts, for an upstream without revisions.
type counting struct {
	stream.Sink
	n    uint64
	last stream.Resume // the upstream's own position, which it keeps private
}

func (s *counting) Reset(epoch string) error {
	s.last.Epoch = epoch
	return s.Sink.Reset(epoch)
}

func (s *counting) Upsert(r stream.Resource) error {
	r.Revision = s.n + 1
	return s.Sink.Upsert(r)
}

func (s *counting) Delete(key string, _ uint64) error { return s.Sink.Delete(key, s.n+1) }

func (s *counting) Commit(revision uint64) error {
	s.n++
	s.last.Revision = revision
	return s.Sink.Commit(s.n)
}

// unrevised is a rig without revisions, whose source goes through change.
func unrevised(m *memory, change func(stream.Sink) stream.Sink) *Rig {
	rig := m.rig()
	rig.Counts = true
	c := &counting{}
	rig.Source = stream.SourceFunc(func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		c.Sink = change(sink)
		return m.endpoint.Watch(ctx, c.last, c)
	})
	rig.Put = func(ctx context.Context, key, value string) (stream.Resource, error) {
		r, err := m.put(ctx, key, value)
		r.Revision = 0
		return r, err
	}
	rig.Delete = func(ctx context.Context, key string) (uint64, error) {
		_, err := m.delete(ctx, key)
		return 0, err
	}
	rig.List = func(ctx context.Context) ([]stream.Resource, uint64, error) {
		all, _, err := m.list(ctx)
		for i := range all {
			all[i].Revision = 0
		}
		return all, 0, err
	}
	return rig
}

// TestSourceThatCounts runs a correct one, and one that claims a state that
// never existed.
func TestSourceThatCounts(t *testing.T) {
	m := newMemory(streamtest.OwnRevision)
	right := unrevised(m, func(s stream.Sink) stream.Sink { return s })
	if _, err := playOne(t, right, m.cut()); err != nil {
		t.Error(err)
	}
	m = newMemory(streamtest.OwnRevision)
	before := map[string]stream.Resource{}
	wrong := unrevised(m, func(s stream.Sink) stream.Sink { return &nostalgic{Sink: s, before: before} })
	if _, err := playOne(t, wrong, m.cut()); err == nil || !strings.Contains(err.Error(), "the source claims that") {
		t.Errorf("got %v: want a claim that does not hold", err)
	}
}
