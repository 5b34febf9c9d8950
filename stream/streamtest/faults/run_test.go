package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/streamtest"
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

func TestSourceThatIsRight(t *testing.T) {
	for name, deletes := range map[string]streamtest.DeleteRevisions{
		"own": streamtest.OwnRevision, "none": streamtest.NoRevision, "last seen": streamtest.LastSeen,
	} {
		t.Run("deletes with revision "+name, func(t *testing.T) { Run(t, newMemory(deletes).rig()) })
	}
}

// playOne runs one fault on a rig, whose source may be broken.
func playOne(t *testing.T, rig *Rig, f Fault) (Row, error) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	r, err := newRun(t.Context(), rig)
	if err != nil {
		t.Fatal(err)
	}
	r.patience = 300 * time.Millisecond
	row, err := r.play(t.Context(), f)
	return row, errors.Join(err, r.close(before))
}

// through is a source that passes on what another one says, changed.
func through(source stream.Source, change func(stream.Sink) stream.Sink) stream.Source {
	return stream.SourceFunc(func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
		return source.Watch(ctx, resume, change(sink))
	})
}

// markKey is what everybody waits for: sources below break their promises
// elsewhere, so that it is the checkers who find that.
var markKey = (&Rig{}).key(keys)

// forgetful loses every third delete.
type forgetful struct {
	stream.Sink
	deletes int
}

func (s *forgetful) Delete(key string, revision uint64) error {
	if s.deletes++; s.deletes%3 == 0 {
		return nil
	}
	return s.Sink.Delete(key, revision)
}

// nostalgic now and then sends what a key was before, as if it were new.
type nostalgic struct {
	stream.Sink
	before map[string]stream.Resource
	n      int
}

func (s *nostalgic) Upsert(r stream.Resource) error {
	old, ok := s.before[r.Key]
	s.before[r.Key] = r
	if s.n++; ok && s.n%5 == 0 && r.Key != markKey {
		r.Value = old.Value
	}
	return s.Sink.Upsert(r)
}

// stubborn deletes what it likes.
type stubborn struct {
	stream.Sink
	last string
	n    int
}

func (s *stubborn) Upsert(r stream.Resource) error {
	if r.Key != markKey {
		s.last = r.Key
	}
	return s.Sink.Upsert(r)
}

func (s *stubborn) Commit(revision uint64) error {
	if s.n++; s.n%10 == 0 {
		if err := s.Sink.Delete(s.last, revision); err != nil {
			return err
		}
	}
	return s.Sink.Commit(revision)
}

// renaming gives each connection another epoch, so that subscribers start again.
type renaming struct {
	stream.Sink
	connection int
}

func (s *renaming) Reset(string) error { return s.Sink.Reset(fmt.Sprintf("c%d", s.connection)) }

// hiding connects again by itself, and so never says that the upstream is gone.
func hiding(source stream.Source) stream.Source {
	return stream.SourceFunc(func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
		for ctx.Err() == nil {
			_ = source.Watch(ctx, resume, sink)
			pause(ctx, 5*time.Millisecond)
		}
		return ctx.Err()
	})
}

// TestTheHarnessCanFail runs sources that break a promise each.
func TestTheHarnessCanFail(t *testing.T) {
	tests := map[string]struct {
		broken func(*memory) stream.Source
		fault  func(*memory) Fault
		want   []string // in the error
	}{
		"loses deletes": {
			func(m *memory) stream.Source {
				return through(m.endpoint, func(s stream.Sink) stream.Sink { return &forgetful{Sink: s} })
			},
			(*memory).cut, []string{"broke Gapless", "is extra"},
		},
		"goes back in time": {
			func(m *memory) stream.Source {
				before := map[string]stream.Resource{}
				return through(m.endpoint, func(s stream.Sink) stream.Sink { return &nostalgic{Sink: s, before: before} })
			},
			(*memory).cut, []string{"broke Ordered", "spurious", "never was"},
		},
		"deletes what is there": {
			func(m *memory) stream.Source {
				return through(m.endpoint, func(s stream.Sink) stream.Sink { return &stubborn{Sink: s} })
			},
			(*memory).cut, []string{"broke Resynchronising", "upstream it was not"},
		},
		"never says stale": {
			func(m *memory) stream.Source { return hiding(m.endpoint) },
			(*memory).gone, []string{"the status is in_sync: want stale"},
		},
		"does not come back": {
			func(m *memory) stream.Source {
				calls := 0
				return stream.SourceFunc(func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
					if calls++; calls > 1 {
						return errGone
					}
					return m.endpoint.Watch(ctx, resume, sink)
				})
			},
			(*memory).cut, []string{"not everything arrived", errGone.Error()},
		},
		"begins anew without a cause": {
			func(m *memory) stream.Source {
				connection := 0
				return stream.SourceFunc(func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
					connection++
					return m.endpoint.Watch(ctx, stream.Resume{}, &renaming{sink, connection})
				})
			},
			(*memory).cut, []string{`epoch "c1" became "c2", and the upstream lost nothing`},
		},
		"leaves a goroutine behind": {
			func(m *memory) stream.Source {
				return stream.SourceFunc(func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
					go func() { <-t.Context().Done() }()
					return m.endpoint.Watch(ctx, resume, sink)
				})
			},
			(*memory).cut, []string{"left goroutines behind"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMemory(streamtest.OwnRevision)
			rig := m.rig()
			rig.Source = test.broken(m)
			_, err := playOne(t, rig, test.fault(m))
			if err == nil {
				t.Fatal("nothing was found")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("want %q in what was found:\n%v", want, err)
				}
			}
		})
	}
}

// counting is a source that counts, as one does whose upstream has no revisions.
type counting struct {
	stream.Sink
	n    uint64
	last stream.Resume // the upstream's own place, which it keeps to itself
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

// TestSourceThatCounts is one that is right, and one that claims what never was.
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

// TestUpstreamThatLosesWrites: then nothing else can be said.
func TestUpstreamThatLosesWrites(t *testing.T) {
	m := newMemory(streamtest.OwnRevision)
	rig := m.rig()
	rig.List = func(context.Context) ([]stream.Resource, uint64, error) { return nil, m.Revision(), nil }
	if _, err := playOne(t, rig, m.cut()); err == nil || !strings.Contains(err.Error(), "asked directly the upstream has not what was written") {
		t.Errorf("got %v: want that the upstream, or the rig, is to blame", err)
	}
}

// TestWritesOfUnknownOutcome: each fifth write fails, some of them after they
// were made.
func TestWritesOfUnknownOutcome(t *testing.T) {
	m := newMemory(streamtest.OwnRevision)
	rig := m.rig()
	n := 0
	rig.Put = func(ctx context.Context, key, value string) (stream.Resource, error) {
		if n++; n%10 == 0 {
			return stream.Resource{}, errGone
		}
		r, err := m.put(ctx, key, value)
		if n%5 == 0 {
			err = errGone
		}
		return r, err
	}
	rig.Delete = func(ctx context.Context, key string) (uint64, error) {
		n++
		revision, err := m.delete(ctx, key)
		if n%5 == 0 {
			err = errGone
		}
		return revision, err
	}
	row, err := playOne(t, rig, m.cut())
	if err != nil {
		t.Error(err)
	}
	if n < 20 {
		t.Errorf("only %d writes were made: %v", n, row)
	}
}

// TestPulse: delays are never negative, and end with the context.
func TestPulse(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	if late := pulse(ctx); late < 0 || late > slack {
		t.Errorf("late by %v", late)
	}
}

func TestPrefixNarrows(t *testing.T) {
	if got := (&Rig{}).prefix(keys); got != "a" {
		t.Errorf("prefix %q: want %q", got, "a")
	}
	nested := &Rig{Key: func(i int) string { return fmt.Sprintf("default/kind-%d", i%3) }}
	if got := nested.prefix(keys); got != "default/kind-0" {
		t.Errorf("prefix %q: want one that some keys have and others have not", got)
	}
}

func TestRowIsALineOfFields(t *testing.T) {
	row := Row{Source: "s", Fault: "f", Noticed: 1400 * time.Microsecond, Recovered: 2 * time.Second, Snapshots: 1, Events: 7}
	if got, want := row.String(), "reliability | s | f | 1 ms | - | 2000 ms | 1 | 7 | 0 |"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
