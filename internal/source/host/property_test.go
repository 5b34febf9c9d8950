package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// call is one Watch call of a random history.
type call struct {
	listings []map[string]string // the results of the polls; then the reader fails
	failAt   int                 // the sink fails this call; 0: none
	resume   string              // the position at which it resumes: newest, older, zero, foreign
}

func drawCall(t *rapid.T) call {
	listing := rapid.MapOfN(
		rapid.SampledFrom([]string{"a", "b", "c", "d"}),
		rapid.SampledFrom([]string{"1", "2", "3"}), 0, 4)
	return call{
		listings: rapid.SliceOfN(listing, 0, 5).Draw(t, "listings"),
		failAt:   rapid.IntRange(0, 12).Draw(t, "failAt"),
		resume:   rapid.SampledFrom([]string{"newest", "newest", "newest", "older", "zero", "foreign"}).Draw(t, "resume"),
	}
}

// TestReplayYieldsTheListing runs random histories of polls, failures of the
// sink at any call, and resumes. A sink that applies the calls holds exactly
// the reader's listing, at every Commit and at the end of each poll.
func TestReplayYieldsTheListing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		calls := rapid.SliceOfN(rapid.Custom(drawCall), 1, 6).Draw(rt, "calls")
		var err error
		// The bubble only computes: rapid fails by panicking, which must not
		// happen on another goroutine.
		synctest.Test(t, func(*testing.T) { err = replay(calls) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

var errListingsEnd = errors.New("no more listings")

// listingReader returns one listing after the other, and then fails. Before
// each it checks that the sink holds the previous one.
type listingReader struct {
	listings []map[string]string
	current  map[string]string
	model    *modelSink
	err      error // first difference
}

func (r *listingReader) read(context.Context) ([]item, error) {
	if r.current != nil && !maps.Equal(r.model.committed, r.current) {
		r.err = errors.Join(r.err, fmt.Errorf("sink holds %v after a poll that found %v", r.model.committed, r.current))
	}
	if len(r.listings) == 0 {
		return nil, errListingsEnd
	}
	r.current, r.listings = r.listings[0], r.listings[1:]
	var items []item
	for key, value := range r.current { // in any order
		items = append(items, item{key: key, value: []byte(value)})
	}
	return items, nil
}

// modelSink applies calls, and checks the invariants of each of them.
type modelSink struct {
	stream.PlainSink
	epoch     string
	revision  uint64 // of the last Commit
	newest    uint64 // that was ever seen
	known     uint64 // the newest that the source knows to be committed, if it started no snapshot since
	committed map[string]string
	staged    map[string]string
	history   map[uint64]map[string]string // committed states, by revision

	calls, failAt int
	resets        int
	changes       int  // since the last Commit
	idle          bool // a Commit without changes is allowed: it means "caught up"
	err           error
}

// begin prepares the sink for a Watch call that resumes at a position: anything
// newer is discarded.
func (s *modelSink) begin(place stream.Resume, failAt int) {
	if place.Epoch == s.epoch {
		s.revision, s.committed = place.Revision, s.history[place.Revision]
	}
	s.staged = map[string]string{}
	maps.Copy(s.staged, s.committed)
	s.calls, s.failAt, s.resets, s.changes, s.idle = 0, failAt, 0, 0, true
}

func (s *modelSink) check(ok bool, format string, args ...any) {
	if !ok {
		s.err = errors.Join(s.err, fmt.Errorf(format, args...))
	}
}

func (s *modelSink) call() error {
	if s.calls++; s.calls == s.failAt {
		return errRefused
	}
	return nil
}

func (s *modelSink) Reset(epoch string) error {
	s.resets++
	s.check(s.calls == 0, "Reset in the middle")
	s.check(s.epoch == "" || s.epoch == epoch, "epoch %q became %q", s.epoch, epoch)
	s.epoch, s.staged, s.known = epoch, map[string]string{}, 0
	return s.call()
}

func (s *modelSink) Upsert(r stream.Resource) error {
	old, known := s.staged[r.Key]
	s.check(!known || old != string(r.Value), "upsert of %s=%s, which it was", r.Key, r.Value)
	s.check(r.Revision > s.newest, "upsert at %d after %d", r.Revision, s.newest)
	s.changes++
	s.staged[r.Key] = string(r.Value)
	return s.call()
}

func (s *modelSink) Delete(key string, revision uint64) error {
	_, known := s.staged[key]
	s.check(known, "delete of %s, which was not there", key)
	s.check(revision > s.newest, "delete at %d after %d", revision, s.newest)
	s.changes++
	delete(s.staged, key)
	return s.call()
}

// Commit takes effect even where it then reports failure.
func (s *modelSink) Commit(revision uint64) error {
	s.check(revision > s.newest, "commit of %d after %d", revision, s.newest)
	s.check(s.changes > 0 || s.idle, "commit of %d without a change", revision)
	s.revision, s.newest = revision, revision
	s.committed = maps.Clone(s.staged)
	s.history[revision] = s.committed
	s.changes, s.idle = 0, false
	err := s.call()
	if err == nil {
		s.known = revision
	}
	return err
}

func (s *modelSink) Status(stream.State, string) error { return s.call() }

// place is the position at which a call resumes.
func (s *modelSink) place(kind string) stream.Resume {
	at := stream.Resume{Epoch: s.epoch, Revision: s.revision}
	switch kind {
	case "older": // the Commit before the newest
		at.Revision = 0
		for revision := range s.history {
			if revision < s.revision {
				at.Revision = max(at.Revision, revision)
			}
		}
	case "foreign":
		at.Epoch = "foreign"
	case "zero":
		at = stream.Resume{}
	}
	return at
}

// replay runs the calls on one source, and returns the first error.
func replay(calls []call) error {
	model := &modelSink{history: map[uint64]map[string]string{}}
	source := newSource(nil, DefaultInterval)
	for _, se := range calls {
		reader := &listingReader{listings: se.listings, model: model}
		source.reader = reader
		place := model.place(se.resume)
		goesOn := model.known != 0 && place == stream.Resume{Epoch: model.epoch, Revision: model.known}
		model.begin(place, se.failAt)
		err := source.Watch(context.Background(), place, model)
		if !errors.Is(err, errListingsEnd) && !errors.Is(err, errRefused) {
			return fmt.Errorf("Watch returned %v", err)
		}
		if err := errors.Join(model.err, reader.err); err != nil {
			return err
		}
		if model.calls > 0 && goesOn != (model.resets == 0) {
			return fmt.Errorf("resume from %s: %d resets", se.resume, model.resets)
		}
	}
	return nil
}
