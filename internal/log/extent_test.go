package log

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// TestExtentsNameTheirBytes: extents with the same name have the same bytes, in
// any batch of any reader at any time, in any format; and nothing is missing.
func TestExtentsNameTheirBytes(t *testing.T) {
	shared := 0
	rapid.Check(t, func(t *rapid.T) {
		l := NewWriter(Config{Watch: "a"})
		if _, err := l.Replace("e", nil, 1); err != nil {
			t.Fatal(err)
		}
		seen := map[string]string{}
		revision := uint64(1)
		commit := func(most int) {
			revision++
			var changes []Change
			for _, key := range rapid.SliceOfNDistinct(rapid.IntRange(0, 80), 1, most, rapid.ID).Draw(t, "keys") {
				value := `"` + strings.Repeat("v", rapid.IntRange(0, 3000).Draw(t, "size")) + `"`
				changes = append(changes, Change{Resource: stream.Resource{Key: fmt.Sprint("key-", key), Revision: revision, Value: []byte(value)}})
			}
			if _, err := l.Commit(changes, revision); err != nil {
				t.Fatal(err)
			}
		}
		commit(80)
		var readers []*Subscription
		for range rapid.IntRange(3, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				commit(5)
			case 1:
				readers = append(readers, l.Subscribe(SubscribeOptions{}))
			default:
				for _, r := range readers {
					shared += checkStretches(t, r, seen)
				}
			}
		}
	})
	if shared == 0 {
		t.Error("no two readers were given the same")
	}
}

// checkStretches reads one batch in both formats, and returns how much of it was
// seen before.
func checkStretches(t *rapid.T, r *Subscription, seen map[string]string) (shared int) {
	var b Batch
	if !r.Next(&b) {
		return 0
	}
	id := []byte("a@e-1")
	for _, format := range []frame.Format{frame.SSE, frame.NDJSON, frame.JSON} {
		for _, id := range [][]byte{nil, id} {
			slices := b.Append(nil, format, id)
			n := 0
			for s := range b.Extents(slices) {
				n += len(s.Slices)
				text := string(bytes.Join(s.Slices, nil))
				if s.Segment == 0 {
					if len(s.Slices) != 1 || len(s.Parts) != 0 {
						t.Fatalf("%s: an own text is %d slices of %d parts", format, len(s.Slices), len(s.Parts))
					}
					continue
				}
				key := fmt.Sprint(s.Segment, s.Parts)
				if before, known := seen[key]; known && before != text {
					t.Fatalf("%s: %s was %.100q and is %.100q", format, key, before, text)
				} else if known {
					shared++
				}
				seen[key] = text
			}
			if n != len(slices) {
				t.Fatalf("%s: the extents have %d slices of %d", format, n, len(slices))
			}
		}
	}
	return shared
}

// TestSnapshotsAtDifferentHeadsShareStretches: what did not change in between has
// the same name.
func TestSnapshotsAtDifferentHeadsShareStretches(t *testing.T) {
	l := NewWriter(Config{Watch: "a"})
	var all []Change
	for i := range 3000 {
		all = append(all, Change{Resource: stream.Resource{Key: fmt.Sprintf("key-%05d", i), Revision: uint64(i + 1), Value: []byte(`"` + strings.Repeat("v", 300) + `"`)}})
	}
	mustReplace(t, l, "e", 3000, all...)
	names := func() map[string]bool {
		names := map[string]bool{}
		var b Batch
		for r := l.Subscribe(SubscribeOptions{}); !r.Synced(); {
			r.Next(&b)
			for s := range b.Extents(b.Append(nil, frame.SSE, []byte("a@e-1"))) {
				if s.Segment != 0 {
					names[fmt.Sprint(s.Segment, s.Parts)] = true
				}
			}
		}
		return names
	}
	before := names()
	changed := all[1500]
	changed.Resource.Revision = 3001
	mustCommit(t, l, 3001, changed)
	kept := 0
	after := names()
	for name := range after {
		if before[name] {
			kept++
		}
	}
	if lost := len(before) - kept; len(before) < 10 || lost > 2 {
		t.Errorf("of %d extents %d are the same after one change", len(before), kept)
	}
}
