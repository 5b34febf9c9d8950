package gateway

import (
	"slices"
	"testing"

	"github.com/watchtide/watchtide/client"
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

// How far deletes are complete in the upstream's ids is passed on, and is in the position
// with which the next request resumes.
func TestDeletesCompleteToIsPassedOn(t *testing.T) {
	sink := &deleteRecorder{}
	u, err := New(Config{URL: "http://upstream:1"})
	if err != nil {
		t.Fatal(err)
	}
	s := sourceOf(t, u, "w")
	r := newReader(t.Context(), s, stream.Resume{}, sink)
	for _, e := range []client.Event{
		{Type: "reset", ID: "w@_e-0/3!2"},
		{Type: "upsert", Resource: client.Resource{Key: "a", Revision: "3", Value: []byte("1")}},
		{Type: "end_of_snapshot", Resource: client.Resource{Revision: "3"}, Count: 1, ID: "w@_e-3!2"},
		{Type: "upsert", Resource: client.Resource{Key: "a", Revision: "4", Value: []byte("1")}, ID: "w@_e-4!3"},
		{Type: "bookmark", Resource: client.Resource{Revision: "5"}},
		{Type: "bookmark", Resource: client.Resource{Revision: "5"}, ID: "w@_e-5"},
		{Type: "bookmark", Resource: client.Resource{Revision: "7"}, ID: "w@_e-7!1"},
	} {
		if err := r.receive(e); err != nil {
			t.Fatal(err)
		}
	}
	if want := [][2]uint64{{3, 1}, {4, 1}, {5, 1}, {5, 5}, {7, 6}}; !slices.Equal(sink.commits, want) {
		t.Errorf("commits %v, want %v", sink.commits, want)
	}
	if at, _, _ := r.Begin(); at.String() != "w@_e-7!1" {
		t.Errorf("continues at %v, want w@_e-7!1", at)
	}
	resumed := newReader(t.Context(), s, stream.Resume{Epoch: "_e", Revision: 9, DeletesBehind: 4}, sink)
	if at, _, _ := resumed.Begin(); at.String() != "w@_e-9!4" {
		t.Errorf("resumes at %v, want w@_e-9!4", at)
	}
}
