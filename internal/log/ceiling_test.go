package log

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// large is a change whose value has so many bytes.
func large(key string, revision uint64, bytes int) Change {
	return Change{Resource: stream.Resource{Key: key, Revision: revision, Value: []byte(`"` + strings.Repeat("x", bytes) + `"`)}}
}

// larges returns n of them, at the revisions from 1 on.
func larges(n, bytes int) []Change {
	var all []Change
	for i := range n {
		all = append(all, large(fmt.Sprint("k", i), uint64(i+1), bytes))
	}
	return all
}

const mega = 1 << 20

// TestCostIsEnough: what is reserved for a snapshot is at least what its log
// takes, and not much more.
func TestCostIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewWriter(Config{Watch: "w", Account: memory.NewAccount(0, nil)})
		top := rapid.SampledFrom([]int{50, 500, 10_000, 100_000}).Draw(t, "size")
		bytes := rapid.IntRange(top/2, top).Draw(t, "bytes")
		snapshot := larges(rapid.IntRange(1, 400).Draw(t, "n"), bytes)
		resources := make([]stream.Resource, len(snapshot))
		for i := range snapshot {
			resources[i] = snapshot[i].Resource
		}
		cost := l.snapshotCost(snapshot)
		if _, err := l.Replace("e", resources, 9000); err != nil {
			t.Fatal(err)
		}
		took := l.Snapshot().Bytes()
		if took > cost+2*int64(storage.SegmentSize) || cost > took*3/2+int64(storage.SegmentSize) {
			t.Errorf("%d bytes reserved, %d taken", cost, took)
		}
		if n := l.account.Own().Logs(); n != took {
			t.Errorf("%d bytes counted, %d taken", n, took)
		}
	})
}

// TestMemoryIsBounded: whatever an upstream does, what is counted and what the log
// really holds stay far below the ceiling, and what is refused changes nothing.
func TestMemoryIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ceiling = 8 * mega
		l := NewWriter(Config{Watch: "w", Account: memory.NewAccount(ceiling, nil), History: Retention{MaxBytes: 64 << 10}})
		revision := uint64(0)
		draw := func(t *rapid.T) []Change {
			var all []Change
			at := rapid.IntRange(0, 500).Draw(t, "at")
			sizes := rapid.SampledFrom([][]int{{100}, {5000}, {20_000}, {50_000, 100, 20_000}}).Draw(t, "bytes")
			deletes := rapid.SampledFrom([]int{1, 2, 7, 1000}).Draw(t, "deletes")
			for i := range rapid.IntRange(1, 200).Draw(t, "n") {
				revision++
				c := large(fmt.Sprint((at+i)%600), revision, sizes[i%len(sizes)])
				if c.Deleted = i%deletes == deletes-1; c.Deleted {
					c.Value = nil
				}
				all = append(all, c)
			}
			return all
		}
		check := func(t *rapid.T, before Snapshot, err error) {
			if err != nil && (!errors.Is(err, memory.ErrExceeded) || l.Snapshot().Revision() != before.Revision() || l.Snapshot().Count() != before.Count()) {
				t.Fatalf("%v; %d resources up to %d before, %d up to %d now", err,
					before.Count(), before.Revision(), l.Snapshot().Count(), l.Snapshot().Revision())
			}
			if n := l.account.Own().Logs(); n > ceiling*3/5 {
				t.Fatalf("%d bytes are counted", n)
			}
			// Beside what is counted there is what was superseded and is not compacted yet, in slabs
			// that large frames may fill by little more than half.
			if n := l.Snapshot().Bytes(); n > ceiling*7/8 {
				t.Fatalf("the log holds %d bytes", n)
			}
		}
		_, err := l.Replace("e", nil, revision)
		check(t, l.Snapshot(), err)
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				before, changes := l.Snapshot(), draw(t)
				_, err := l.Commit(changes, revision)
				check(t, before, err)
			},
			"snapshot": func(t *rapid.T) {
				before := l.Snapshot()
				var snapshot []stream.Resource
				for _, c := range draw(t) {
					if !c.Deleted {
						snapshot = append(snapshot, c.Resource)
					}
				}
				revision++
				epoch := rapid.SampledFrom([]string{"e", "e", "f"}).Draw(t, "epoch")
				_, err := l.Replace(epoch, snapshot, revision)
				check(t, before, err)
			},
		})
	})
}

// TestLittleIsLeftUncompacted: under a small ceiling, what an outage superseded does
// not stay beside the current state.
func TestLittleIsLeftUncompacted(t *testing.T) {
	const ceiling = 8 * mega
	l := NewWriter(Config{Watch: "w", Account: memory.NewAccount(ceiling, nil), History: Retention{MaxBytes: 64 << 10}})
	revision := uint64(0)
	replace := func(name string, count int, sizes ...int) {
		t.Helper()
		var resources []stream.Resource
		for i := range count {
			revision++
			resources = append(resources, large(fmt.Sprint(name, i), revision, sizes[i%len(sizes)]).Resource)
		}
		if _, err := l.Replace("e", resources, revision); err != nil {
			t.Fatal(err)
		}
	}
	replace("a", 43, 50_000, 20_000, 100)
	replace("b", 47, 20_000)
	replace("c", 149, 20_000)
	if n := l.Snapshot().Bytes(); n > ceiling*3/5 {
		t.Errorf("the log holds %d bytes of %d", n, ceiling)
	}
}
