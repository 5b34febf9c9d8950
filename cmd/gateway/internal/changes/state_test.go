package changes

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/watchtide/watchtide/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var subject = NewSubject([]string{"w"}, client.View{})

func open(t *testing.T, name string) *State {
	t.Helper()
	s, err := OpenState(name, subject, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// tracker feeds a state.
type tracker struct {
	*Tracker
	*State
	seen []string
}

func newTracker(s *State) *tracker {
	f := &tracker{State: s}
	f.Tracker = NewTracker(s.Known(), f)
	return f
}

func (f *tracker) Change(e client.Event) error {
	f.seen = append(f.seen, string(e.Type)+" "+e.Key)
	return nil
}

func (f *tracker) feed(t *testing.T, events ...client.Event) {
	t.Helper()
	for _, e := range events {
		if err := f.Event(e); err != nil {
			t.Fatal(err)
		}
	}
}

func upsertRecord(key string, revision int) client.Event {
	return client.Event{Type: "upsert", Watch: "w", ID: fmt.Sprintf("w@e-%d", revision),
		Resource: client.Resource{Key: key, Revision: fmt.Sprint(revision), Value: fmt.Append(nil, revision)}}
}

func removeRecord(key string, revision int) client.Event {
	e := upsertRecord(key, revision)
	e.Type, e.Value = "delete", nil
	return e
}

// records returns what is known, in order.
func records(s *State) []string {
	var out []string
	for r := range s.Known().Records() {
		key, position := "", ""
		if r.Key != nil {
			key = *r.Key
		}
		if r.Position != nil {
			position = *r.Position
		}
		out = append(out, fmt.Sprint(r.Watch, r.Complete, key, r.KeyEncoding, r.Pending, r.Revision, r.Hash, position))
	}
	slices.Sort(out)
	return out
}

func TestStateSurvivesItsProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state")
	s := open(t, name)
	newTracker(s).feed(t, upsertRecord("a", 1), upsertRecord("b", 2), upsertRecord("\x01\"<", 3), removeRecord("a", 4))
	want := records(s)
	s.Close()
	s = open(t, name)
	if got := records(s); !slices.Equal(got, want) || len(got) != 4 {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := s.Known().Position(); got != "w@e-4" {
		t.Errorf("the position is %q", got)
	}
	f := newTracker(s)
	f.feed(t, upsertRecord("b", 2), upsertRecord("b", 5))
	if want := []string{"upsert b"}; !slices.Equal(f.seen, want) {
		t.Errorf("changes %q, want %q", f.seen, want)
	}
}

// What only a first snapshot had that was not complete is no change, and is forgotten.
func TestStateOfAnInterruptedSnapshot(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state")
	begin := func() *State {
		t.Helper()
		s, err := OpenState(name, subject, false)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := begin()
	reset := client.Event{Type: "reset", Watch: "w", Reason: "initial", ID: "w@e-0/1"}
	newTracker(s).feed(t, reset, upsertRecord("gone", 1))
	s.Close()
	s = begin()
	f := newTracker(s)
	f.feed(t, reset, upsertRecord("a", 2), client.Event{Type: "end_of_snapshot", Watch: "w", ID: "w@e-2", Resource: client.Resource{Revision: "2"}})
	s.Close()
	s = begin()
	defer s.Close()
	if got := records(s); len(got) != 3 || strings.Contains(strings.Join(got, "\n"), "gone") || len(f.seen) > 0 {
		t.Errorf("got %q after the changes %q", got, f.seen)
	}
}

func TestStateIsForItsOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	open(t, filepath.Join(dir, "state"))
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStateHasOneProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state")
	s := open(t, name)
	if _, err := OpenState(name, subject, true); err == nil || !strings.Contains(err.Error(), "another process uses it") {
		t.Fatalf("got %v", err)
	}
	s.Close()
	open(t, name)
}

// A file that is not a state of the same watches is refused, and stays as it is.
func TestOtherFilesAreLeftAlone(t *testing.T) {
	for content, want := range map[string]string{
		"#!/bin/sh\n":               "another kind of file",
		"{}\n":                      "another kind of file",
		"no end of a line":          "another kind of file",
		"{\"watchtide_state\":2}\n": "the format 2",
		"{\"watchtide_state\":1}\n": "other watches",
		`{"watchtide_state":1,"subject":{"watches":["w"],"prefix":"x"}}` + "\n": "another view",
	} {
		name := filepath.Join(t.TempDir(), "state")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenState(name, subject, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", content, err, want)
		}
		if got, _ := os.ReadFile(name); string(got) != content {
			t.Errorf("%q was changed to %q", content, got)
		}
	}
	name := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, name)
}

// Wherever a crash has cut the file, and whatever is behind the cut, what is left is an earlier
// state.
func TestADamagedFileIsAnEarlierState(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state")
	s := open(t, name)
	f := newTracker(s)
	steps := [][]string{records(s)}
	for i := range 3 {
		key := fmt.Sprint(i % 2)
		f.feed(t, upsertRecord(key, 10+i))
		steps = append(steps, records(s))
	}
	s.Close()
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	begin := bytes.IndexByte(whole, '\n') + 1
	reached := -1
	tails := []string{"", "\x00\x00\x00\n\x00", "{\"watch\":\"w\",\"key\":7}\n{\"position\":\"w@e-99\"}\n"}
	for cut := begin; cut <= len(whole); cut++ {
		tail := tails[cut%len(tails)]
		if err := os.WriteFile(name, append(bytes.Clone(whole[:cut]), tail...), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenState(name, subject, true)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		position := s.Known().Position()
		s.Close()
		revision := 9
		if position != "" {
			if _, err := fmt.Sscanf(position, "w@e-%d", &revision); err != nil {
				t.Fatalf("cut at %d: position %q", cut, position)
			}
		}
		if revision-9 < reached || revision > 12 {
			t.Fatalf("cut at %d: position %q after step %d", cut, position, reached)
		}
		reached = revision - 9
	}
	if reached != 3 {
		t.Errorf("the whole file is step %d of %d", reached, len(steps)-1)
	}
}

// The file is bounded by the resources, not by their changes.
func TestStateStaysShort(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state")
	s := open(t, name)
	f := newTracker(s)
	largest := int64(0)
	for i := range 700 {
		f.feed(t, upsertRecord("a", i+1))
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, info.Size())
	}
	if limit := int64(60 * (slack + 20)); largest > limit {
		t.Errorf("the file had %d bytes, want at most %d", largest, limit)
	}
	want := records(s)
	s.Close()
	if got := records(open(t, name)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDefaultNamesDiffer(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	names := map[string]bool{}
	for _, server := range []string{"http://a", "http://b"} {
		for _, view := range []client.View{{}, {Prefix: "x"}, {Labels: "x"}, {Filter: "x"}, {Fields: []string{"x"}}} {
			for _, line := range []string{"true", "false"} {
				name, err := DefaultName(server, NewSubject([]string{"b", "a"}, view), line)
				again, _ := DefaultName(server, NewSubject([]string{"a", "b"}, view), line)
				if err != nil || name != again || names[name] {
					t.Errorf("%s, %+v, %s: %q, %q, %v", server, view, line, name, again, err)
				}
				names[name] = true
			}
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := DefaultName("", subject, ""); err == nil || !strings.Contains(err.Error(), "--state") {
		t.Errorf("without a home: %v", err)
	}
}

// FuzzState feeds any file.
func FuzzState(f *testing.F) {
	f.Add([]byte("{\"watchtide_state\":1,\"subject\":{\"watches\":[\"w\"]}}\n{\"watch\":\"w\",\"key\":\"a\",\"revision\":3,\"hash\":\"00112233445566778899aabbccddeeff\"}\n{\"position\":\"w@e-3\"}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		name := filepath.Join(t.TempDir(), "state")
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenState(name, subject, false)
		if err != nil {
			return
		}
		want := records(s)
		s.Close()
		s, err = OpenState(name, subject, false)
		if err != nil {
			t.Fatalf("it cannot be read again: %v", err)
		}
		defer s.Close()
		if got := records(s); !slices.Equal(got, want) {
			t.Errorf("read again: %q, want %q", got, want)
		}
	})
}
