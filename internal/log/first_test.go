package log

import (
	"fmt"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// textsOf reads one flush as texts, with the id after it.
func textsOf(s *Subscription, b *Batch) (out []string) {
	if !s.Next(b) {
		return nil
	}
	for e := range b.Events() {
		switch e.Type {
		case stream.Upsert, stream.Delete:
			out = append(out, fmt.Sprintf("%v %s", e.Type, e.Resource.Key))
		case stream.StatusChange:
		default:
			out = append(out, e.Type.String())
		}
	}
	if p, ok := s.Position(); ok && b.Boundary() {
		out = append(out, fmt.Sprintf("id %d/%d", p.Upserts, p.AsOf))
	}
	return out
}

// TestFirst: the resources that a reader wants first come before the snapshot, once.
func TestFirst(t *testing.T) {
	w := NewWriter(Config{Watch: "w"})
	mustReplace(t, w, "e", 4, upsert("a", 1), upsert("b", 2), upsert("c", 3), upsert("d", 4))
	s := w.Subscribe(SubscribeOptions{First: []string{"c", "x", "a"}})
	defer s.Close()
	var b Batch
	for _, want := range [][]string{
		{"reset", "id 0/4"},
		{"upsert c", "upsert a", "id 0/4"},
		{"upsert a", "upsert b", "upsert c", "upsert d", "end_of_snapshot", "id 4/4"},
		nil,
	} {
		if got := textsOf(s, &b); !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
	}
	mustReplace(t, w, "f", 4, upsert("a", 1), upsert("c", 3))
	for _, want := range [][]string{{"reset", "id 0/4"}, {"upsert a", "upsert c", "end_of_snapshot", "id 4/4"}} {
		if got := textsOf(s, &b); !slices.Equal(got, want) {
			t.Errorf("after a reset: read %q, want %q", got, want)
		}
	}
	p, _ := s.Position()
	again := w.Subscribe(SubscribeOptions{First: []string{"c"}, Resume: &p})
	defer again.Close()
	if got, want := textsOf(again, &b), []string{"end_of_snapshot", "id 4/4"}; !slices.Equal(got, want) {
		t.Errorf("a resume: read %q, want %q", got, want)
	}
}

// TestFirstIsDeletedMeanwhile: a resource that came first, and is deleted before the rest of the snapshot is taken
// away from a reader that is too slow, is deleted.
func TestFirstIsDeletedMeanwhile(t *testing.T) {
	w := NewWriter(Config{Watch: "w"})
	mustReplace(t, w, "e", 4, upsert("a", 1), upsert("b", 2), upsert("c", 3), upsert("d", 4))
	s := w.Subscribe(SubscribeOptions{First: []string{"c"}})
	defer s.Close()
	var b Batch
	textsOf(s, &b)
	if got, want := textsOf(s, &b), []string{"upsert c", "id 0/4"}; !slices.Equal(got, want) {
		t.Fatalf("read %q, want %q", got, want)
	}
	mustCommit(t, w, 5, Change{Resource: stream.Resource{Key: "c", Revision: 5}, Deleted: true})
	w.pins.TakeAll()
	var got []string
	for texts := textsOf(s, &b); texts != nil; texts = textsOf(s, &b) {
		got = append(got, texts...)
	}
	if !slices.Contains(got, "delete c") || slices.Contains(got, "upsert c") {
		t.Errorf("read %q, want the delete of c", got)
	}
}

// TestGetQuickly: what cannot be found at once is not looked for.
func TestGetQuickly(t *testing.T) {
	w := NewWriter(Config{Watch: "w"})
	mustReplace(t, w, "e", 2, upsert("a", 1), upsert("b", 2))
	s := w.Snapshot()
	mustCommit(t, w, 3, upsert("a", 3))
	for key, want := range map[string]bool{"a": false, "b": true, "x": true} {
		_, e, known := s.v.GetQuickly(w.framing, storage.NewKey(key))
		if known != want || known && (e != nil) != (key == "b") {
			t.Errorf("%s: found %t, known %t, want it to be known: %t", key, e != nil, known, want)
		}
	}
}
