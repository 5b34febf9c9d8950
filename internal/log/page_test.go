package log

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log/internal/listing"
	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

func allPages(t *testing.T, l *Writer, size int, between func(page int)) map[string]string {
	t.Helper()
	state, token := map[string]string{}, ""
	var revision uint64
	for n := 0; ; n++ {
		p, err := l.Page(token, size)
		if err != nil {
			t.Fatalf("page %d: %v", n, err)
		}
		if len(p.Resources) > size {
			t.Fatalf("page %d has %d resources, want at most %d", n, len(p.Resources), size)
		}
		if n > 0 && p.Revision != revision {
			t.Fatalf("page %d is at %d, the one before at %d", n, p.Revision, revision)
		}
		revision = p.Revision
		for _, r := range p.Resources {
			if _, twice := state[r.Key]; twice {
				t.Fatalf("%q stands on two pages", r.Key)
			}
			state[r.Key] = fmt.Sprintf("%d %s", r.Revision, r.Value)
		}
		if p.Next == "" {
			if len(state) != p.Count {
				t.Fatalf("%d resources, count says %d", len(state), p.Count)
			}
			return state
		}
		token = p.Next
		between(n)
	}
}

// TestPagesAreOfOneRevision: even while the watch changes so much that segments are
// rewritten, and where many resources share a revision.
func TestPagesAreOfOneRevision(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	var all []Change
	for i := range 1000 {
		c := upsert(fmt.Sprintf("%c/%d", 'a'+i%2, i), uint64(1+i/100))
		c.Value = value(strings.Repeat("x", 1000))
		all = append(all, c)
	}
	mustReplace(t, l, "e", 10, all...)
	revision := uint64(10)
	churn := func(int) {
		for _, c := range all {
			revision++
			c.Revision = revision
			mustCommit(t, l, revision, c)
		}
	}
	want := stateOf(l.Snapshot())
	got := allPages(t, l, 170, churn)
	if len(got) != 1000 {
		t.Fatalf("%d resources, want 1,000", len(got))
	}
	for k, v := range want {
		if got[k] != v {
			t.Fatalf("%s is %.20q, want %.20q", k, got[k], v)
		}
	}
}

// TestPagesAreBounded: a page of large values is short, whatever size is asked
// for, and a value that is too large for any page has one of its own.
func TestPagesAreBounded(t *testing.T) {
	for _, revisions := range []uint64{1, 20} { // all in one transaction, or each in its own
		l := NewWriter(Config{Watch: "w"})
		var all []Change
		for i := range uint64(20) {
			c := upsert(fmt.Sprintf("key-%02d", i), 1+i%revisions)
			c.Value = value(strings.Repeat("x", 1<<20))
			if i == 7 {
				c.Value = value(strings.Repeat("x", 2*listing.PageBytes))
			}
			all = append(all, c)
		}
		mustReplace(t, l, "e", 20, all...)
		pages := 1
		allPages(t, l, 1000, func(int) { pages++ })
		if want := 11; pages != want { // two MiB in a page, and three pages around the large one
			t.Errorf("%d revisions: %d pages, want %d", revisions, pages, want)
		}
		p, err := l.Page("", 1000)
		if err != nil || len(p.Resources) != 2 || p.Count != 20 {
			t.Errorf("%d revisions: the first page has %d of %d, %v", revisions, len(p.Resources), p.Count, err)
		}
	}
}

// TestFitsPage checks random logs: what fits a page has no further one, and a few small resources
// do fit.
func TestFitsPage(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := NewWriter(Config{Watch: "w"})
		var all []Change
		bytes := 0
		for i := range uint64(rapid.IntRange(1, 12).Draw(r, "resources")) {
			c := upsert(fmt.Sprintf("key-%02d", i), 1+i)
			c.Value = value(strings.Repeat("x", rapid.SampledFrom([]int{1, 1000, listing.PageBytes / 8, listing.PageBytes / 2, listing.PageBytes}).Draw(r, "bytes")))
			bytes += len(c.Key) + len(c.Value)
			all = append(all, c)
		}
		mustReplace(t, l, "e", 20, all...)
		size := rapid.IntRange(1, 12).Draw(r, "size")
		p, err := l.Page("", size)
		if err != nil {
			r.Fatal(err)
		}
		fits := l.Snapshot().FitsPage(size)
		if fits && p.Next != "" || !fits && len(all) <= size && bytes < listing.PageBytes/4 {
			r.Fatalf("%d resources of %d bytes, %d in a page: it fits: %t", len(all), bytes, size, fits)
		}
	})
}

func TestPageTokens(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 10, upsert("a", 1), upsert("b", 2), upsert("c", 3))
	p, err := l.Page("", 2)
	if err != nil || p.Next == "" || p.Position.String() != "w@e-10" {
		t.Fatalf("%+v, %v", p, err)
	}
	var invalid *stream.InvalidError
	for _, token := range []string{"x", "e30", "!!!", p.Next + "x"} {
		if _, err := l.Page(token, 2); !errors.As(err, &invalid) {
			t.Errorf("token %q: %v, want an InvalidError", token, err)
		}
	}
	replica := NewWriter(Config{Watch: "w"})
	mustReplace(t, replica, "e", 10, upsert("c", 3), upsert("b", 2), upsert("a", 1))
	mustCommit(t, replica, 11, upsert("c", 11))
	next, err := replica.Page(p.Next, 2)
	if err != nil || len(next.Resources) != 1 || next.Resources[0].Revision != 3 {
		t.Errorf("the next page on another replica: %+v, %v, want c as of revision 10", next, err)
	}
	mustReplace(t, l, "f", 10, upsert("a", 1))
	fresh := NewWriter(Config{Watch: "w"})
	mustReplace(t, fresh, "f", 10, upsert("a", 1))
	if _, err := fresh.Page(p.Next, 2); !errors.Is(err, ErrPageGone) {
		t.Errorf("token of another epoch: %v, want ErrPageGone", err)
	}
}

func FuzzPageToken(f *testing.F) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(f, l, "e", 10, upsert("a", 1), upsert("b", 2))
	p, err := l.Page("", 1)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(p.Next)
	f.Fuzz(func(t *testing.T, token string) {
		var invalid *stream.InvalidError
		if _, err := l.Page(token, 1); err != nil && !errors.Is(err, ErrPageGone) && !errors.As(err, &invalid) {
			t.Errorf("%q: %v", token, err)
		}
	})
}

// TestPagesAgainstTheWholeState: successive pages of any size, read while the log
// changes, are together the state at the revision of the first page, whether few or
// very many resources share a revision.
func TestPagesAgainstTheWholeState(t *testing.T) {
	for seed := range uint64(length(12, 4)) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := NewWriter(Config{Watch: "w", History: Retention{MaxDeletes: 1 + random.IntN(50)}})
		group := 1 + random.IntN(3*listing.LargeGroup)
		revision := uint64(0)
		transaction := func() (changes []Change) {
			revision++
			for range 1 + random.IntN(group) {
				key := fmt.Sprintf("%c%d", 'a'+random.IntN(3), random.IntN(2*group))
				changes = append(changes, upsert(key, revision))
			}
			return append(changes, upsert("", revision))
		}
		mustReplace(t, l, "e", 1, transaction()...)
		for range 3 {
			changes := transaction()
			mustCommit(t, l, revision, changes...)
		}
		for range 3 {
			want := map[string]string{}
			for r := range l.Snapshot().Resources() {
				want[r.Key] = fmt.Sprintf("%d %s", r.Revision, r.Value)
			}
			got := allPages(t, l, 1+random.IntN(group+50), func(page int) {
				if page%3 == 0 {
					revision++
					mustCommit(t, l, revision, remove(fmt.Sprintf("b%d", random.IntN(2*group)), revision))
					changes := transaction()
					mustCommit(t, l, revision, changes...)
				}
			})
			if !maps.Equal(got, want) {
				t.Fatalf("seed %d: %d resources, want %d", seed, len(got), len(want))
			}
		}
	}
}

// TestPagesCostTheSameEverywhere: the last page of a listing takes no longer than
// the second.
func TestPagesCostTheSameEverywhere(t *testing.T) {
	for name, revision := range map[string]func(i int) uint64{
		"each in its own transaction": func(i int) uint64 { return uint64(i + 1) },
		"all in one transaction":      func(int) uint64 { return 1 },
	} {
		const size = 20
		n := length(200_000, 50_000)
		l := NewWriter(Config{Watch: "w"})
		snapshot := make([]stream.Resource, n)
		for i := range snapshot {
			snapshot[i] = stream.Resource{Key: fmt.Sprintf("k%07d", i), Revision: revision(i), Value: []byte(`{"v":1}`)}
		}
		if _, err := l.Replace("e", snapshot, uint64(n)); err != nil {
			t.Fatal(err)
		}
		after := func(i int) time.Duration {
			r := snapshot[i]
			token := listing.Token{Epoch: "e", AsOf: uint64(n), After: r.Revision, Key: []byte(r.Key), Count: n}.String()
			best := time.Hour
			for range 50 {
				began := time.Now()
				p, err := l.Page(token, size)
				best = min(best, time.Since(began))
				if err != nil || len(p.Resources) != size || p.Resources[0].Key != snapshot[i+1].Key {
					t.Fatalf("%s, after %d: %d resources, %v", name, i, len(p.Resources), err)
				}
			}
			return best
		}
		if first, last := after(size-1), after(n-size-1); last > 10*first+20*time.Microsecond {
			t.Errorf("%s: the second page takes %v, the last one %v", name, first, last)
		} else {
			t.Logf("%s: the second page takes %v, the last one %v", name, first, last)
		}
	}
}

func TestPageSize(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	var all []Change
	for i := range defaultPageSize + 1 {
		all = append(all, upsert(fmt.Sprint("k", i), 1))
	}
	mustReplace(t, l, "e", 1, all...)
	for size, want := range map[int]int{-1: defaultPageSize, 0: defaultPageSize, 1: 1, 5000: defaultPageSize + 1} {
		if p, err := l.Page("", size); err != nil || len(p.Resources) != want {
			t.Errorf("size %d: %d resources, %v; want %d", size, len(p.Resources), err, want)
		}
	}
}
