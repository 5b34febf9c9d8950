package log

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/storage"
)

// TestTombstonesAreBounded: a key that is deleted and created again and again costs
// nothing, whatever else is remembered.
func TestTombstonesAreBounded(t *testing.T) {
	for _, others := range []int{0, 1, 1000} {
		l := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: 2000, MaxAge: time.Hour}, Account: memory.NewAccount(16<<20, nil)})
		mustReplace(t, l, "e", 1)
		revision := uint64(1)
		for i := range others {
			revision++
			mustCommit(t, l, revision, remove(fmt.Sprint("other", i), revision))
		}
		most := int64(0)
		for range 20_000 {
			mustCommit(t, l, revision+1, upsert("k", revision+1))
			mustCommit(t, l, revision+2, remove("k", revision+2))
			revision += 2
			most = max(most, l.deletes.Memory())
		}
		if got := l.Snapshot().Tombstones(); got != others+1 {
			t.Errorf("%d tombstones, want %d", got, others+1)
		}
		if want := int64(others)*100 + 8<<10; most > want {
			t.Errorf("the queue took %d bytes beside %d tombstones, want at most %d", most, others, want)
		}
	}
}

// TestTombstonesAreAllQueued: the queue holds what the log shows, oldest first, and
// never more than the limit.
func TestTombstonesAreAllQueued(t *testing.T) {
	for seed := range uint64(length(20, 5)) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: 1 + random.IntN(300)}})
		mustReplace(t, l, "e", 1)
		for revision := uint64(2); revision < 3000; revision++ {
			key := fmt.Sprint("k", random.IntN(400))
			if random.IntN(3) == 0 {
				mustCommit(t, l, revision, upsert(key, revision))
			} else {
				mustCommit(t, l, revision, remove(key, revision))
			}
		}
		v := l.head.Load()
		var want, got []uint64
		for i := range v.Segments {
			for j := range v.Entries(i) {
				if e := &v.Entries(i)[j]; e.Is(storage.IsDelete) && e.Visible(v.Seq) {
					want = append(want, e.Seq)
				}
			}
		}
		for seq := range l.deletes.Seqs() {
			if _, e := v.Find(seq); e != nil && e.Visible(v.Seq) {
				got = append(got, seq)
			}
		}
		if !slices.Equal(got, want) || len(got) != v.Tombstones || len(got) > l.history.MaxDeletes {
			t.Fatalf("seed %d: queued %v, the log has %v; counted %d, limit %d", seed, got, want, v.Tombstones, l.history.MaxDeletes)
		}
	}
}
