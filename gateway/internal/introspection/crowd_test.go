package introspection

import (
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/log"
)

// crowd is a list with streams of many principals.
type crowd struct {
	*List
	progress log.Progress
	open     []*PublishedProgress
}

func newCrowd() *crowd {
	sub := log.NewWriter(log.Config{Watch: "a"}).Subscribe(log.SubscribeOptions{})
	return &crowd{List: New(slog.New(slog.DiscardHandler)), progress: sub.Progress()}
}

// enter opens a stream of a principal, with an application of an OAuth client.
func (c *crowd) enter(name, application string) {
	who := named(access.Principal{
		Mechanism: access.JWT, Issuer: "https://idp.example.com", Name: name, Claims: map[string]any{"azp": application},
	})
	from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), uint16(len(c.open)))
	one := NewPublishedProgress(c.Enter(from, application+"/1", who), "sse", "", Followed{Watch: "a"})
	one.Show(Delivered{}, func(int) log.Progress { return c.progress })
	c.Add(one)
	c.open = append(c.open, one)
}

// leave ends a stream.
func (c *crowd) leave(i int) {
	one := c.open[i]
	c.open = slices.Delete(c.open, i, i+1)
	c.Remove(one, LeftByItself)
}

// TestPagesOfACrowd: whichever streams begin and end between two pages in the order of age, each that
// remains is listed once, and the oldest first.
func TestPagesOfACrowd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd()
		for range rapid.IntRange(0, 40).Draw(t, "streams") {
			c.enter(rapid.SampledFrom([]string{"ann", "bob", "eve"}).Draw(t, "name"), "shop")
		}
		filter := Filter{Principal: rapid.SampledFrom([]string{"", "ann (https://idp.example.com)"}).Draw(t, "principal")}
		stays := slices.Clone(c.open)
		var seen []string
		for after, first := (Place{}), true; first || after != (Place{}); first = false {
			q := Query{Filter: filter, Order: ByAge, After: after, Limit: rapid.IntRange(1, 10).Draw(t, "limit")}
			q.Ask(c.List, nil)
			for _, s := range q.List(c.List) {
				seen = append(seen, s.ID)
			}
			if after = q.Next(); after != (Place{}) {
				parsed, ok := ParsePlace(after.String())
				if !ok || parsed != after {
					t.Fatalf("%+v is parsed as %+v", after, parsed)
				}
			}
			if n := len(c.open); n > 0 && rapid.Bool().Draw(t, "leave") {
				i := rapid.IntRange(0, n-1).Draw(t, "which")
				stays = slices.DeleteFunc(stays, func(one *PublishedProgress) bool { return one == c.open[i] })
				c.leave(i)
			}
			if len(c.open) < 80 && rapid.Bool().Draw(t, "enter") {
				c.enter("ann", "shop")
			}
		}
		for i, id := range seen {
			if slices.Contains(seen[:i], id) {
				t.Fatalf("%s is listed twice: %v", id, seen)
			}
		}
		at := 0
		for _, one := range stays {
			if filter.Principal != "" && c.Client(one.who).Name != "ann" {
				continue
			}
			next := slices.Index(seen[at:], one.who.id())
			if next < 0 {
				t.Fatalf("%s is missing, or in the wrong place: %v", one.who.id(), seen)
			}
			at += next + 1
		}
	})
}

// TestManyPrincipals: more principals than a table has groups are all counted, in a bounded number of
// groups, the largest of them apart. Clients that have left are forgotten.
func TestManyPrincipals(t *testing.T) {
	const many, large = 3 * maxGroups, 50
	c := newCrowd()
	for i := range many {
		c.enter(fmt.Sprint("user-", i), fmt.Sprint("app-", i))
		if i%(many/large) == 0 {
			c.enter("sync", "job")
		}
	}
	for _, by := range []Property{ByPrincipal, ByClientID} {
		census := TakeCensus(c.List, nil, by, 10)
		counted, groups := census.Others.Count, census.Left
		for _, g := range census.Groups {
			counted, groups = counted+g.Count, groups+1
		}
		if len(census.Groups) != 10 || counted != len(c.open) || census.All.Count != len(c.open) {
			t.Errorf("by %s: %d groups, %d of %d counted", by, len(census.Groups), counted, len(c.open))
		}
		if groups < many || groups > many+large {
			t.Errorf("by %s: %d groups, want about %d", by, groups, many+1)
		}
		q := Query{By: by, Limit: 1}
		q.Ask(c.List, nil)
		if len(q.Groups.groups) > maxGroups {
			t.Errorf("by %s: %d groups are kept", by, len(q.Groups.groups))
		}
		if first := census.Groups[0]; first.Count < large/4 || first.Key.Principal+first.Key.ClientID == "" {
			t.Errorf("by %s: the largest group is %+v of %d", by, first.Key, first.Count)
		}
	}
	for len(c.open) > 0 {
		c.leave(len(c.open) - 1)
	}
	if n := c.Clients.Keys(); n != 0 {
		t.Errorf("%d clients are remembered", n)
	}
}

// BenchmarkManyPrincipals is a census, and a page of one principal, of a crowd in which every stream
// has a principal of its own; and the memory that each of them takes in the list.
func BenchmarkManyPrincipals(b *testing.B) {
	for _, many := range []int{1000, 100_000} {
		before := heap()
		c := newCrowd()
		for i := range many {
			c.enter(fmt.Sprint("user-", i), "shop")
		}
		perStream := float64(heap()-before) / float64(many)
		b.Run(fmt.Sprint("census/principals=", many), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				TakeCensus(c.List, nil, ByPrincipal, 50)
			}
			b.ReportMetric(perStream, "B/stream")
		})
		b.Run(fmt.Sprint("page/principals=", many), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q := Query{Filter: Filter{Principal: "user-7 (https://idp.example.com)"}, Order: ByAge, Limit: 100}
				if q.Ask(c.List, nil); q.Count != 1 {
					b.Fatalf("%d found", q.Count)
				}
			}
		})
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the second one sweeps what the first one found
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
