package faults

import (
	"context"
	"errors"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

var errGone = errors.New("the test took it away")

// memory is an upstream in memory, which can be refused, cut and wiped, and the
// rig around it.
type memory struct {
	*streamtest.Upstream
	endpoint *streamtest.Replica
	deletes  streamtest.DeleteRevisions
}

func newMemory(deletes streamtest.DeleteRevisions) *memory {
	u := streamtest.NewUpstream("e0", deletes)
	return &memory{Upstream: u, endpoint: u.Replica(), deletes: deletes}
}

func (m *memory) rig() *Rig {
	return &Rig{
		Name: "memory", Source: m.endpoint, Put: m.put, Delete: m.delete, List: m.list,
		Value: streamtest.ValueOf, Notice: time.Millisecond, Recover: 2 * time.Second,
		More: []Fault{m.cut(), m.gone(), m.wiped(), m.restored()},
	}
}

func (m *memory) put(_ context.Context, key, value string) (stream.Resource, error) {
	revision := m.Commit(1, streamtest.Write{Key: key, Value: value})
	m.endpoint.Catch(-1)
	return stream.Resource{Key: key, Revision: revision, Value: []byte(value)}, nil
}

func (m *memory) delete(_ context.Context, key string) (uint64, error) {
	revision := m.Commit(1, streamtest.Write{Key: key, Delete: true})
	m.endpoint.Catch(-1)
	if m.deletes != streamtest.OwnRevision {
		revision = 0
	}
	return revision, nil
}

func (m *memory) list(context.Context) (all []stream.Resource, revision uint64, err error) {
	for key, v := range m.State() {
		all = append(all, stream.Resource{Key: key, Revision: v.Revision, Value: []byte(v.Value)})
	}
	return all, m.Revision(), nil
}

func (m *memory) cut() Fault {
	return Fault{Name: "cut", Broken: true, Inject: func() error {
		m.endpoint.Disconnect(streamtest.ErrCut)
		return nil
	}}
}

func (m *memory) gone() Fault {
	refuse := func(err error) func() error {
		return func() error { m.endpoint.Refuse(err); return nil }
	}
	return Fault{Name: "gone", Gone: true, Inject: refuse(errGone), Heal: refuse(nil)}
}

func (m *memory) wiped() Fault {
	return Fault{Name: "wiped", Wipes: true, Broken: true, Inject: func() error {
		m.Restore("e1", m.Oldest())
		m.endpoint.Move()
		return nil
	}}
}

// restored takes it back by some transactions.
func (m *memory) restored() Fault {
	return Fault{Name: "restored", Wipes: true, Broken: true, Inject: func() error {
		m.Restore("e2", m.Revision()-5)
		m.endpoint.Move()
		return nil
	}}
}
