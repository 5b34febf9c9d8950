package grpc

import (
	"slices"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// deleteRecorder is a Sink that records up to where the deletes of each commit are complete.
type deleteRecorder struct {
	calls
	said    uint64
	commits [][2]uint64 // revision, and up to where deletes are complete
}

func (s *deleteRecorder) DeletesCompleteTo(revision uint64) { s.said = revision }

func (s *deleteRecorder) Commit(revision uint64) error {
	s.commits = append(s.commits, [2]uint64{revision, s.said})
	return nil
}

// How far deletes are complete in the upstream's positions is passed on, and is in the
// position with which the next call resumes.
func TestDeletesCompleteToIsPassedOn(t *testing.T) {
	s, err := New(Config{Address: "upstream:1", Watch: "services"})
	if err != nil {
		t.Fatal(err)
	}
	sink := &deleteRecorder{}
	r := newReader(s, stream.Resume{}, sink)
	for _, m := range []*message{
		at("services@_e-0/3!2", reset()), upsert("a", 3, "1"), at("services@_e-3!2", endOfSnapshot(3, 1)),
		at("services@_e-4!3", upsert("a", 4, "1")), bookmark(5), at("services@_e-5", bookmark(5)),
	} {
		if err := r.receive(m); err != nil {
			t.Fatal(err)
		}
	}
	if want := [][2]uint64{{3, 1}, {4, 1}, {5, 1}, {5, 5}}; !slices.Equal(sink.commits, want) {
		t.Errorf("commits %v, want %v", sink.commits, want)
	}
	resumed := newReader(s, stream.Resume{Epoch: "_e", Revision: 9, DeletesBehind: 4}, sink)
	if want := "services@_e-9!4"; resumed.position != want {
		t.Errorf("resumes at %s, want %s", resumed.position, want)
	}
	sink.commits = nil
	if err := resumed.receive(caughtUp(9)); err != nil || !slices.Equal(sink.commits, [][2]uint64{{9, 5}}) {
		t.Errorf("commits %v, %v; want the state known at the resume", sink.commits, err)
	}
}
