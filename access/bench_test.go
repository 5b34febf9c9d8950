package access

import (
	"fmt"
	"testing"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// BenchmarkView is what a request costs: of a principal that is known, of one that is new
// and shares its view with others, and of one with a view of its own.
func BenchmarkView(b *testing.B) {
	p := compile(b, example())
	known := tenantOf("ann", "acme")
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.View(known, "orders")
		}
	})
	b.Run("shared", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.View(tenantOf("ann", "acme"), "orders")
		}
	})
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			p.View(user(fmt.Sprint(i)), "orders")
		}
	})
}

// BenchmarkIndex is a change that concerns one of the views of 10,000 principals, each of
// which sees its own resources.
func BenchmarkIndex(b *testing.B) {
	p := compile(b, PolicyConfig{
		Roles:   []Role{{Name: "anyone", When: "true"}},
		Watches: []WatchRules{{Name: "w", Rules: []Rule{{Role: "anyone", Read: "value.owner == principal.name"}, {Role: "anyone", Read: "value.deputy == principal.name", Fields: []string{"state"}}}}},
	})
	for _, n := range []int{1, 10_000} {
		var x view.Index[int]
		for i := range n {
			d, _ := p.View(&Principal{Name: fmt.Sprint("user-", i)}, "w")
			x.Add(i, d)
		}
		value := []byte(`{"owner":"user-0","deputy":"user-0","state":"passing","node":{"name":"n1","address":"10.0.0.1"},"tags":["a","b"]}`)
		c := view.Change{Old: &stream.Resource{Key: "k", Revision: 1, Value: value}, New: &stream.Resource{Key: "k", Revision: 2, Value: value}}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				met := 0
				x.Candidates(c, func(c view.Candidate[int]) {
					if ok, _ := c.After(); ok {
						met++
					}
				})
				if met != 1 {
					b.Fatal(met)
				}
			}
		})
	}
}
