package host

import (
	"bytes"
	"maps"
	"slices"

	"github.com/watchtide/watchtide/internal/source/adapter"
)

// diff returns the changes from before to now: first the deletes, by key, then
// the new or changed resources, in the order of now. after is now by key;
// before is left unchanged.
func diff(before map[string][]byte, now []item) (after map[string][]byte, changes []adapter.PolledChange) {
	after = make(map[string][]byte, len(now))
	var upserts []adapter.PolledChange
	for _, i := range now {
		old, known := before[i.key]
		if known && bytes.Equal(old, i.value) {
			after[i.key] = old // the new copy may go
			continue
		}
		after[i.key] = i.value
		upserts = append(upserts, adapter.PolledChange{Key: i.key, Value: i.value})
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, still := after[key]; !still {
			changes = append(changes, adapter.PolledChange{Key: key})
		}
	}
	return after, append(changes, upserts...)
}
