package wire

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func text(s string) [][]byte { return [][]byte{[]byte(s)} }

func TestCacheMakesOnce(t *testing.T) {
	c := NewCache(1 << 20)
	var all sync.WaitGroup
	var pieces [50]Piece
	for i := range pieces {
		all.Go(func() { pieces[i] = c.Piece(Gzip, 7, []byte("all"), text(strings.Repeat("abc", 1000))) })
	}
	all.Wait()
	for _, p := range pieces {
		if &p.Bytes[0] != &pieces[0].Bytes[0] || p.Sum != pieces[0].Sum {
			t.Fatal("two made the same piece")
		}
	}
	if s := c.Stats(); s.Misses != 1 || s.Hits != uint64(len(pieces))-1 || s.Bytes < int64(len(pieces[0].Bytes)) {
		t.Errorf("%+v", s)
	}
	if other := c.Piece(Gzip, 7, []byte("half"), text("abc")); other.Sum == pieces[0].Sum {
		t.Error("another part of the location is the same piece")
	}
	if other := c.Piece(Gzip, 8, []byte("all"), text("abc")); other.Sum == pieces[0].Sum {
		t.Error("another location is the same piece")
	}
	if other := c.Piece(Zstd, 7, []byte("all"), text(strings.Repeat("abc", 1000))); other.Sum != pieces[0].Sum || string(other.Bytes) == string(pieces[0].Bytes) {
		t.Error("another coding has the same bytes, or another text")
	}
}

// TestCacheKeepsItsBudget checks that the cache stays within its budget and keeps the
// most recently used pieces.
func TestCacheKeepsItsBudget(t *testing.T) {
	const budget = 20 << 10
	c := NewCache(budget)
	get := func(place uint64) { c.Piece(Gzip, place, nil, text(fmt.Sprint(place, strings.Repeat("z", 50)))) }
	for i := range uint64(1000) {
		get(i)
		get(0)
		if s := c.Stats(); s.Bytes > budget {
			t.Fatalf("%d bytes are held", s.Bytes)
		}
	}
	before := c.Stats()
	get(0)
	get(999)
	get(1)
	if after := c.Stats(); after.Hits-before.Hits != 2 || after.Misses-before.Misses != 1 {
		t.Errorf("%+v, then %+v", before, after)
	}
	if len(c.entries) != c.used.Len() {
		t.Errorf("%d entries, %d in order", len(c.entries), c.used.Len())
	}
}

// TestCacheOfNothing checks that a cache with no budget still makes pieces.
func TestCacheOfNothing(t *testing.T) {
	c := NewCache(1)
	if p := c.Piece(Gzip, 1, nil, text("abc")); p.Sum != SumOf([]byte("abc")) || c.Stats().Bytes != 0 {
		t.Errorf("%+v, %+v", p, c.Stats())
	}
}
