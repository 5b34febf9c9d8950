package log

import (
	"fmt"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/storage"
)

// TestForgottenKeys: a key whose delete is forgotten is gone, but not for holders of
// an older snapshot.
func TestForgottenKeys(t *testing.T) {
	l := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: 10}})
	var all []Change
	for i := range 1000 {
		all = append(all, upsert(fmt.Sprint("k", i), 1))
	}
	mustReplace(t, l, "e", 1, all...)
	before := l.Snapshot()
	for i := range 500 {
		mustCommit(t, l, uint64(2+i), remove(fmt.Sprint("k", i), uint64(2+i)))
	}
	after := l.Snapshot()
	for i := range 500 {
		key := fmt.Sprint("k", i)
		if r, ok := before.Get(key); !ok || r.Revision != 1 {
			t.Fatalf("%s before it was deleted: %v %t", key, r, ok)
		}
		if _, ok := after.Get(key); ok {
			t.Fatalf("%s is there, though it was deleted", key)
		}
		if hash := storage.NewKey(key).Hash; after.v.Index.DroppedAfter(hash, after.v.Seq) {
			t.Errorf("%s: the whole log is read for it", key)
		}
	}
	mustCommit(t, l, 1000, upsert("k0", 1000))
	if r, ok := l.Snapshot().Get("k0"); !ok || r.Revision != 1000 {
		t.Errorf("k0, created again: %v %t", r, ok)
	}
	if _, ok := after.Get("k0"); ok {
		t.Error("k0 is there in the snapshot from before it was created again")
	}
}

// TestForgottenKeyIsFoundMissingAtOnce: the lookup does not scan every entry.
func TestForgottenKeyIsFoundMissingAtOnce(t *testing.T) {
	l := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: 1}})
	var all []Change
	for i := range length(200_000, 50_000) {
		all = append(all, upsert(fmt.Sprint("k", i), 1))
	}
	mustReplace(t, l, "e", 1, all...)
	const keys = 100
	for i := range keys + 1 {
		mustCommit(t, l, uint64(2+i), remove(fmt.Sprint("k", i), uint64(2+i)))
	}
	v := l.Snapshot()
	took := func(from int, want bool) time.Duration {
		best := time.Hour
		for range 5 {
			began := time.Now()
			for i := range keys {
				if _, ok := v.Get(fmt.Sprint("k", from+i)); ok != want {
					t.Fatalf("k%d: %t, want %t", from+i, ok, want)
				}
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	if there, gone := took(keys+1, true), took(0, false); gone > 20*there {
		t.Errorf("%d keys that are there took %v, as many that are forgotten %v", keys, there, gone)
	}
}
