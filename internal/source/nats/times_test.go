//go:build servers

package nats

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// A change has the time at which the server stored it, also one that was made while nobody was
// connected; a snapshot has none.
func TestTimesAreThoseOfTheServer(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{History: 5})
	b.must(b.put("a", "1"))
	first := start(t, s, nil).has("a", "1")
	b.must(b.put("a", "2"))
	first.has("a", "2").stop()
	b.must(b.put("a", "3"))
	again := start(t, s, first).has("a", "3").stop()
	if made := first.Commits()[0].Made; !made.IsZero() {
		t.Errorf("the snapshot was made at %v", made)
	}
	for _, r := range []*run{first, again} {
		last := r.Commits()[len(r.Commits())-1]
		entry, err := b.GetRevision(t.Context(), "a", last.Revision)
		if err != nil {
			t.Fatal(err)
		}
		if !last.Made.Equal(entry.Created()) {
			t.Errorf("the change at %d was made at %v, want %v", last.Revision, last.Made, entry.Created())
		}
	}
}
