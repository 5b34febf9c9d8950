package log

import (
	"fmt"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// TestRepeatedKeys: both ways to look for keys that come twice find what a map finds.
func TestRepeatedKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.IntRange(0, rapid.IntRange(1, 1<<20).Draw(t, "different")), 0, 200).Draw(t, "keys")
		changes, seen := make([]Change, len(keys)), map[int]bool{}
		for i, key := range keys {
			changes[i].Resource = stream.Resource{Key: fmt.Sprint(key)}
			seen[key] = true
		}
		want := len(seen) < len(keys)
		if few, many := repeatedInFew(changes), repeatedInMany(changes); few != want || many != want {
			t.Fatalf("repeated: %t and %t, want %t", few, many, want)
		}
	})
}

func BenchmarkRepeatedKeys(b *testing.B) {
	changes := make([]Change, 1_000_000)
	for i := range changes {
		changes[i].Key = fmt.Sprintf("key-%07d", i*7919%len(changes))
	}
	b.ReportAllocs()
	for b.Loop() {
		if repeatedInMany(changes) {
			b.Fatal("no key is repeated")
		}
	}
}
