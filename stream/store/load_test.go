package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// TestALoadedLogIsThatOfASnapshot with the deletes before it: of the same resources and deletes, Recall
// makes the log that Replace makes.
func TestALoadedLogIsThatOfASnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &fileWatch{stored: &stored{record: record{Epoch: "e"}}}
		var resources, deletes []found
		var snapshot, gone []stream.Resource
		revision := uint64(0)
		for _, key := range rapid.SliceOfN(rapid.StringMatching("[a-f]"), 0, 20).Draw(t, "keys") {
			revision += rapid.Uint64Range(1, 3).Draw(t, "step")
			before := slices.IndexFunc(resources, func(r found) bool { return string(r.key) == key })
			if before >= 0 {
				resources, snapshot = slices.Delete(resources, before, before+1), slices.Delete(snapshot, before, before+1)
			}
			if before >= 0 && rapid.Bool().Draw(t, "delete") {
				deletes = append(deletes, found{revision, []byte(key), nil})
				gone = append(gone, stream.Resource{Key: key, Revision: revision})
				continue
			}
			r := stream.Resource{Key: key, Revision: revision, Value: fmt.Append(nil, revision)}
			resources, snapshot = append(resources, found{revision, []byte(key), r.Value}), append(snapshot, r)
		}
		f.stored.Horizon = rapid.Uint64Range(0, revision).Draw(t, "horizon")
		w := New(Config{}).newWatch("notes")
		kept, err := f.remembered(resources, deletes)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.recall(resources, kept, f.stored, revision); err != nil {
			t.Fatal(err)
		}
		other := log.NewWriter(log.Config{Watch: "notes"})
		other.PrepareEarlier(&log.Earlier{Deletes: gone, After: f.stored.Horizon})
		if _, err := other.Replace("e", snapshot, revision); err != nil {
			t.Fatal(err)
		}
		if got, want := entriesOf(w.log.Snapshot()), entriesOf(other.Snapshot()); !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

// entriesOf describes a log.
func entriesOf(s log.Snapshot) (all []string) {
	for e := range s.Entries(0) {
		if s.Counts(e) {
			r := e.Resource()
			all = append(all, fmt.Sprintf("%s@%d/%d %s %t %t", r.Key, r.Revision, e.Revision(), r.Value, e.Deleted(), e.EndsTransaction()))
		}
	}
	horizon, _ := s.Horizon()
	return append(all, fmt.Sprintf("%s %s from %d, complete to %d, %s", s.Position(), s.Digest(), horizon, s.DeletesCompleteTo(), s.Epoch()))
}

// TestDeletesThatDoNotFitAreForgotten: there is room for the resources, which the store begins with, and
// clients that may lack a delete begin again.
func TestDeletesThatDoNotFitAreForgotten(t *testing.T) {
	path := newFile(t)
	s := reopen(t, path)
	w := s.Writer("notes")
	write(t, w, "kept", `"`+strings.Repeat("x", 50_000)+`"`)
	for i := range 100 {
		key := fmt.Sprint(i, strings.Repeat("k", 3000))
		write(t, w, key, "1")
		if _, err := w.Delete(background, stream.DeleteRequest{Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	want := state(s)
	s.Close()
	for ceiling, deletes := range map[int64]int{40 << 20: 100, 400 << 10: 0} {
		s, err := Open(Config{Path: path, Memory: memory.NewCeiling(ceiling)})
		if err != nil {
			t.Fatal(err)
		}
		v := s.find("notes").log.Snapshot()
		horizon, _ := v.Horizon()
		if v.Tombstones() != deletes || !maps.Equal(state(s), want) || (horizon == v.Revision()) != (deletes == 0) {
			t.Errorf("with %d bytes there are %d deletes and the horizon is %d of %d; want %d deletes", ceiling, v.Tombstones(), horizon, v.Revision(), deletes)
		}
		s.Close()
	}
	if s, err := Open(Config{Path: path, Memory: memory.NewCeiling(10 << 10)}); err == nil || !strings.Contains(err.Error(), "want a larger stream.memory.total") {
		t.Errorf("error %v", err)
		s.Close()
	}
}
