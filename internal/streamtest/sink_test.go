package streamtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// play runs a script on a recorder, as the conformance suite runs a source.
func play(t *testing.T, resume stream.Resume, steps ...Step) *SinkRecorder {
	t.Helper()
	r := NewSinkRecorder(resume, nil)
	if err := NewScripted(steps).Watch(context.Background(), resume, r); err != nil {
		t.Fatal(err)
	}
	r.End()
	return r
}

func TestSinkRecorderKeepsCommits(t *testing.T) {
	r := play(t, stream.Resume{}, Reset("e"), Upsert("b", 2, "2"), Upsert("a", 1, "1"), Commit(2),
		Delete("a", 0), Commit(2), Status(stream.Stale, "why"), Upsert("c", 3, "3"))
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	if diff := r.State().Diff(State{"b": {2, "2"}}); diff != "" {
		t.Error(diff)
	}
	if got, want := r.Resume(), (stream.Resume{Epoch: "e", Revision: 2}); got != want {
		t.Errorf("resume is %v, want %v", got, want)
	}
	if r.Resets() != 1 || len(r.Commits()) != 2 || len(r.Statuses()) != 1 {
		t.Errorf("%d resets, %d commits and %d statuses, want 1, 2 and 1", r.Resets(), len(r.Commits()), len(r.Statuses()))
	}
}

func TestSinkRecorderSeesBreaches(t *testing.T) {
	from := stream.Resume{Epoch: "e", Revision: 5}
	for want, r := range map[string]*SinkRecorder{
		"without the name of an epoch":  play(t, stream.Resume{}, Reset("")),
		`Upsert of "a" before Reset`:    play(t, stream.Resume{}, Upsert("a", 1, "1")),
		`Delete of "a" before Reset`:    play(t, stream.Resume{}, Delete("a", 1)),
		"Commit of 1 before Reset":      play(t, stream.Resume{}, Commit(1)),
		`"a" at revision 0`:             play(t, from, Upsert("a", 0, "1")),
		"after Commit of 5":             play(t, from, Upsert("a", 5, "1")),
		"Commit of 4 after Commit of 5": play(t, from, Commit(4)),
		`"a" is of revision 7`:          play(t, from, Upsert("a", 7, "1"), Commit(6)),
		"is not JSON text":              play(t, from, Upsert("a", 7, "{")),
	} {
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestSinkRecorderSeesLateCallsAndChangedValues(t *testing.T) {
	value := []byte("1")
	r := NewSinkRecorder(stream.Resume{Epoch: "e", Revision: 5}, nil)
	if err := r.Upsert(stream.Resource{Key: "a", Revision: 6, Value: value}); err != nil {
		t.Fatal(err)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	value[0] = '2'
	r.End()
	_ = r.Commit(6)
	err := r.Err()
	for _, want := range []string{"was changed after Upsert", "after Watch returned"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestScriptedPlaysOneScriptForEachCall(t *testing.T) {
	broken := errors.New("broken")
	s := NewScripted([]Step{Fail(broken)}, []Step{})
	ctx, cancel := context.WithCancel(context.Background())
	r := NewSinkRecorder(stream.Resume{}, nil)
	if err := s.Watch(ctx, stream.Resume{}, r); !errors.Is(err, broken) {
		t.Errorf("first call: %v, want %v", err, broken)
	}
	if err := s.Watch(ctx, stream.Resume{Epoch: "e", Revision: 1}, r); err != nil {
		t.Errorf("second call: %v", err)
	}
	cancel()
	if err := s.Watch(ctx, stream.Resume{}, r); !errors.Is(err, context.Canceled) {
		t.Errorf("third call: %v, want it to hang until the end", err)
	}
	if calls := s.Calls(); len(calls) != 3 || calls[1].Revision != 1 {
		t.Errorf("calls are %v", calls)
	}
}
