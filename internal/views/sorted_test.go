package views

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/view"
)

// shortTurn returns a turn that is over as soon as it may be.
func shortTurn(of *parent) *turn {
	now := time.Now()
	return &turn{of: of, ends: now, began: now.Add(-slice)}
}

// TestOrderMadeInTurns changes resources between the turns in which an order is made, by itself or in a batch, and takes the state
// away from it of which it was begun.
func TestOrderMadeInTurns(t *testing.T) {
	for name, filter := range map[string]string{"in a batch": "", "alone": `value.exists(k, k == "n")`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, Config{})
				numbers := map[string]int{}
				change := func(key string, n int) string {
					numbers[key] = n
					return fmt.Sprintf(`%s={"n":%d}`, key, n)
				}
				var texts []string
				for i := range 3000 {
					texts = append(texts, change(fmt.Sprintf("k%d", i), i*7919%3001))
				}
				f.commit(texts...)
				w, err := f.views.Open(f.base, definition(t, view.Params{Order: "n", Filter: filter, Offset: "1000", Limit: "1000"}), Request{Client: "c"})
				if err != nil {
					t.Fatal(err)
				}
				var e *entry
				for _, e = range f.views.watches[f.base].views {
				}
				work := newBatch([]*entry{e}).work
				if e.costly {
					work = e.feed
				}
				turns := 0
				for i, done := 0, false; !done; i++ {
					gone := fmt.Sprintf("k%d", i*17)
					delete(numbers, gone)
					f.commit(gone+"=", change(fmt.Sprintf("k%d", i*31+1), i*9), change(fmt.Sprint("new", i), i*50))
					done = work(shortTurn(e.parent)) && e.seen == f.base.Snapshot().Number()
					if e.order.builder == nil {
						continue
					}
					turns++
					if e.costly && i%3 == 0 {
						e.release() // others needed the memory
					}
					if n := e.account.Own().Logs(); n < e.order.builder.Bytes() {
						t.Errorf("after %d turns %d bytes are counted, want %d", turns, n, e.order.builder.Bytes())
					}
				}
				if turns < 33 { // 30 to add 3000 keys, and some to merge them
					t.Errorf("the order was made in %d turns", turns)
				}
				work(shortTurn(e.parent)) // what has come since
				want := slices.SortedFunc(maps.Keys(numbers), func(a, b string) int { return cmp.Or(cmp.Compare(numbers[a], numbers[b]), cmp.Compare(a, b)) })
				var got []string
				for _, key := range e.order.tree.From(0) {
					got = append(got, string(key))
				}
				if !slices.Equal(got, want) {
					t.Errorf("the order has %d keys, want %d, each at its place", len(got), len(want))
				}
				got = nil
				for r := range w.Snapshot().Resources() {
					got = append(got, r.Key)
				}
				if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want[1000:2000]))) {
					t.Errorf("the window has %d keys, want others", len(got))
				}
			})
		})
	}
}
