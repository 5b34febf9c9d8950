package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// through is a source that passes on the calls of another one, changed.
func through(source stream.Source, change func(stream.Sink) stream.Sink) stream.Source {
	return stream.SourceFunc(func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
		return source.Watch(ctx, resume, change(sink))
	})
}

// markKey is the key that all subscribers wait for: the sources below break their
// contract for other keys, so that the checkers find that.
var markKey = (&Rig{}).key(keys)

// forgetful loses every other delete.
type forgetful struct {
	stream.Sink
	deletes int
}

func (s *forgetful) Delete(key string, revision uint64) error {
	if s.deletes++; s.deletes%2 == 1 {
		return nil
	}
	return s.Sink.Delete(key, revision)
}

// nostalgic now and then sends an old value of a key, as if it were new.
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

// stubborn deletes arbitrary keys.
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

// renaming gives each connection another epoch, so that subscribers start over.
type renaming struct {
	stream.Sink
	connection int
}

func (s *renaming) Reset(string) error { return s.Sink.Reset(fmt.Sprintf("c%d", s.connection)) }

// hiding reconnects by itself, and so never reports that the upstream is lost.
func hiding(source stream.Source) stream.Source {
	return stream.SourceFunc(func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
		for ctx.Err() == nil {
			_ = source.Watch(ctx, resume, sink)
			pause(ctx, 5*time.Millisecond)
		}
		return ctx.Err()
	})
}

// TestTheHarnessCanFail runs sources that each break the contract.
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
		"deletes existing keys": {
			func(m *memory) stream.Source {
				return through(m.endpoint, func(s stream.Sink) stream.Sink { return &stubborn{Sink: s} })
			},
			(*memory).cut, []string{"broke Resynchronising", "spurious: "},
		},
		"never reports stale": {
			func(m *memory) stream.Source { return hiding(m.endpoint) },
			(*memory).gone, []string{"the status is in_sync: want stale"},
		},
		"does not reconnect": {
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
		"starts over without a cause": {
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
					t.Errorf("want %q in:\n%v", want, err)
				}
			}
		})
	}
}
