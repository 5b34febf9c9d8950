package history

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// TestPagesOfHiddenVersions: the pages of a resource are the same whether it has versions that
// nobody may know of or not, wherever they end.
func TestPagesOfHiddenVersions(t *testing.T) {
	d, err := view.Parse(view.Params{Grants: []view.Grant{{Filter: "!value.secret"}}})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		with, without := newUpstream(t, log.Retention{}, 0), newUpstream(t, log.Retention{}, 0)
		hidden := true
		for revision := uint64(11); revision < 40; revision++ {
			secret := rapid.IntRange(0, 3).Draw(t, "secret") > 0
			r := stream.Resource{Key: "k", Revision: revision, Value: fmt.Appendf(nil, `{"secret":%t}`, secret)}
			with.put(t, revision, r)
			if secret && hidden {
				r.Key = "other"
			}
			without.put(t, revision, r)
			hidden = secret
		}
		q := Query{
			Limit: rapid.IntRange(1, 5).Draw(t, "limit"), Bytes: rapid.SampledFrom([]int64{1, 1 << 20}).Draw(t, "bytes"),
			Entries: rapid.SampledFrom([]int{1, 1000}).Draw(t, "entries"), Key: new("k"),
		}
		inTime := rapid.Bool().Draw(t, "in time")
		more := func() bool { return inTime }
		for page := range 100 {
			got, want := Read(with.w.Snapshot(), d, q, more), Read(without.w.Snapshot(), d, q, more)
			if !reflect.DeepEqual(got.Next, want.Next) || len(got.Changes) != len(want.Changes) || got.Since != want.Since {
				t.Fatalf("page %d has %d changes, is complete since %d, and %+v follows; without hidden versions it has %d, since %d, and %+v follows",
					page, len(got.Changes), got.Since, got.Next, len(want.Changes), want.Since, want.Next)
			}
			if q.Before = got.Next; got.Next == nil {
				return
			}
		}
		t.Fatal("the pages do not end")
	})
}

// put makes one change.
func (u *upstream) put(t *rapid.T, revision uint64, r stream.Resource) {
	if _, err := u.w.Commit([]log.Change{{Resource: r}}, revision); err != nil {
		t.Fatal(err)
	}
}
