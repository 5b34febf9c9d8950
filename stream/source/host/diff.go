package host

import (
	"bytes"
	"maps"
	"slices"

	"github.com/watchtide/watchtide/stream"
)

// change is what happened to one key.
type change struct {
	key   string
	value []byte // nil: it is gone
}

// send passes the change on at a revision.
func (c change) send(sink stream.Sink, revision uint64) error {
	if c.value == nil {
		return sink.Delete(c.key, revision)
	}
	return sink.Upsert(stream.Resource{Key: c.key, Revision: revision, Value: c.value})
}

// diff returns what turns before into now: first what vanished, by key, then
// what is new or different, in the order of now. after is now by key; before is
// left unchanged.
func diff(before map[string][]byte, now []item) (after map[string][]byte, changes []change) {
	after = make(map[string][]byte, len(now))
	var upserts []change
	for _, i := range now {
		old, known := before[i.key]
		if known && bytes.Equal(old, i.value) {
			after[i.key] = old // the new copy may go
			continue
		}
		after[i.key] = i.value
		upserts = append(upserts, change(i))
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, still := after[key]; !still {
			changes = append(changes, change{key: key})
		}
	}
	return after, append(changes, upserts...)
}
