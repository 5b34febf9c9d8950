package order

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// row is a key of the model of a tree.
type row struct{ sortKey, key string }

// model is what a tree should hold, by key.
type model map[string]string

func (m model) sorted() []row {
	var rows []row
	for key, sortKey := range m {
		rows = append(rows, row{sortKey, key})
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.sortKey+a.key, b.sortKey+b.key) })
	return rows
}

// check compares a tree with its model.
func check(t interface{ Fatalf(string, ...any) }, tree *Tree, m model, from int) {
	want := m.sorted()
	if tree.Len() != len(want) {
		t.Fatalf("the tree has %d keys, want %d", tree.Len(), len(want))
	}
	var got []row
	for sortKey, key := range tree.From(from) {
		got = append(got, row{string(sortKey), string(key)})
	}
	if from = min(from, len(want)); !slices.Equal(got, want[from:]) {
		t.Fatalf("from %d on the tree has %q, want %q", from, got, want[from:])
	}
	for i, r := range want {
		if got, found := tree.Rank([]byte(r.sortKey + r.key)); got != i || !found {
			t.Fatalf("%q comes after %d others (found: %t), want %d", r, got, found, i)
		}
		if got, found := tree.Rank([]byte(r.sortKey + r.key + "\x00")); got != i+1 || found {
			t.Fatalf("what follows %q comes after %d others (found: %t), want %d", r, got, found, i+1)
		}
		if got, ok := tree.SortKey(r.key); !ok || string(got) != r.sortKey {
			t.Fatalf("the sort key of %q is %q, want %q", r.key, got, r.sortKey)
		}
	}
}

// built builds a tree of some of the keys, and its model.
func built(random *rand.Rand, keys int, sortKeyOf func() string) (Tree, model) {
	var b Builder
	m := model{}
	for _, i := range random.Perm(keys)[:random.IntN(keys+1)] {
		key := fmt.Sprintf("k%d", i)
		m[key] = sortKeyOf()
		b.Add(key, []byte(m[key]))
	}
	for !b.Merge(1 + random.IntN(2*len(m)+1)) {
	}
	return b.Tree(), m
}

// TestTree compares a tree, which is empty at first or built, with a map that is sorted.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tree Tree
		m := model{}
		keys := rapid.SampledFrom([]int{3, 40, 2000, 6000}).Draw(t, "keys")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		pad := rapid.SampledFrom([]string{"", "a", "a text that is long"}).Draw(t, "pad")
		sortKeyOf := func() string {
			value := fmt.Append(nil, random.IntN(keys))
			if pad != "" {
				value = fmt.Appendf(nil, "%q", pad+strings.Repeat("\x00", random.IntN(2))+string(value))
			}
			return string(AppendValue(nil, value, random.IntN(8) > 0))
		}
		if rapid.Bool().Draw(t, "built") {
			if tree, m = built(random, keys, sortKeyOf); random.IntN(4) == 0 {
				check(t, &tree, m, random.IntN(len(m)+2))
			}
		}
		growing := rapid.IntRange(1, 9).Draw(t, "growing")
		for range rapid.IntRange(0, 3*keys).Draw(t, "changes") {
			key := fmt.Sprintf("k%d", random.IntN(keys))
			if random.IntN(10) >= growing {
				_, had := m[key]
				if delete(m, key); tree.Delete(key) != had {
					t.Fatalf("Delete(%q) returns %t, want %t", key, !had, had)
				}
				continue
			}
			sortKey := sortKeyOf()
			had, ok := m[key]
			if changed := tree.Set(key, []byte(sortKey)); changed != (!ok || had != sortKey) {
				t.Fatalf("Set(%q) returns %t, want %t", key, changed, !changed)
			}
			m[key] = sortKey
		}
		check(t, &tree, m, random.IntN(len(m)+2))
	})
}

// TestTreeInOrder adds keys in ascending order and removes them in the same order, as times do.
func TestTreeInOrder(t *testing.T) {
	var tree Tree
	m := model{}
	const keys = 20_000
	for i := range keys {
		key, sortKey := fmt.Sprintf("k%d", i), AppendValue(nil, fmt.Append(nil, i), false)
		tree.Set(key, sortKey)
		m[key] = string(sortKey)
	}
	full := tree.Bytes()
	if each := full / keys; each > 48 {
		t.Errorf("a key takes %d bytes, want at most 48", each)
	}
	check(t, &tree, m, 0)
	for i := range keys - 10 {
		tree.Delete(fmt.Sprintf("k%d", i))
		delete(m, fmt.Sprintf("k%d", i))
	}
	check(t, &tree, m, 3)
	for key := range m {
		tree.Delete(key)
	}
	check(t, &tree, model{}, 0)
}

// TestBuilder builds a tree of many runs, and removes its keys.
func TestBuilder(t *testing.T) {
	const keys = 100_000
	var b Builder
	m := model{}
	for i := range keys {
		key, sortKey := fmt.Sprintf("k%d", i), numberOf(int(uint32(i)*2654435761))
		b.Add(key, sortKey)
		m[key] = string(sortKey)
	}
	for i := 0; !b.Merge(1000); i++ {
		if each := b.Bytes() / keys; each > 48 {
			t.Fatalf("a key takes %d bytes after %d keys, want at most 48", each, i*1000)
		}
	}
	tree := b.Tree()
	if each := tree.Bytes() / keys; each > 40 {
		t.Errorf("a key takes %d bytes, want at most 40", each)
	}
	check(t, &tree, m, 0)
	for key := range m {
		if len(m) == 10 {
			break
		}
		tree.Delete(key)
		delete(m, key)
	}
	check(t, &tree, m, 3)
}

func TestTreeOfLongKeys(t *testing.T) {
	var tree Tree
	m := model{}
	for i := range 300 {
		key := strings.Repeat("k", i*40) + fmt.Sprint(i)
		tree.Set(key, []byte{1})
		m[key] = "\x01"
	}
	check(t, &tree, m, 0)
	for key := range m {
		tree.Set(key, []byte{2, 3})
		m[key] = "\x02\x03"
	}
	check(t, &tree, m, 0)
	for key := range m {
		tree.Delete(key)
		delete(m, key)
	}
	check(t, &tree, m, 0)
}

const million = 1_000_000

func numberOf(i int) []byte {
	return AppendValue(nil, fmt.Appendf(nil, "%d.%d", i%97_001, i%10), true)
}

func filled(n int) *Tree {
	tree := &Tree{}
	for i := range n {
		tree.Set(fmt.Sprintf("pod-%06d", i), numberOf(int(uint32(i)*2654435761)))
	}
	return tree
}

// BenchmarkBuild makes an order of a million keys by a number.
func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		var of Builder
		for i := range million {
			of.Add(fmt.Sprintf("pod-%06d", i), numberOf(int(uint32(i)*2654435761)))
		}
		b.ReportMetric(float64(of.Bytes())/million, "counted-bytes/key-added")
		for !of.Merge(1 << 10) {
		}
		b.ReportMetric(float64(of.Bytes())/million, "counted-bytes/key-merged")
		tree := of.Tree()
		b.ReportMetric(float64(tree.Bytes())/million, "counted-bytes/key")
		runtime.KeepAlive(&tree)
	}
}

// TestBytesOfTexts: an order by texts takes what the documentation says.
func TestBytesOfTexts(t *testing.T) {
	const n = 20_000
	for length, most := range map[int]float64{10: 48, 50: 90, 256: 300, 1000: 300} {
		var of Builder
		for i := range n {
			text := fmt.Sprintf("%s%08d", strings.Repeat("x", length-8), uint32(i)*2654435761%100_000_000)
			of.Add(fmt.Sprintf("pod-%06d", i), AppendValue(nil, []byte(`"`+text+`"`), false))
		}
		for !of.Merge(1 << 10) {
		}
		tree := of.Tree()
		if got := float64(tree.Bytes()) / n; got > most {
			t.Errorf("texts of %d bytes take %.1f bytes for each key, want at most %.0f", length, got, most)
		}
	}
}

// BenchmarkSet makes it key by key.
func BenchmarkSet(b *testing.B) {
	for b.Loop() {
		tree := filled(million)
		b.ReportMetric(float64(tree.Bytes())/million, "counted-bytes/key")
		runtime.KeepAlive(tree)
	}
}

// BenchmarkChange changes the number of one of a million keys.
func BenchmarkChange(b *testing.B) {
	tree := filled(million)
	random := rand.New(rand.NewPCG(1, 2))
	keys := make([]string, 1<<16)
	numbers := make([][]byte, len(keys))
	for i := range keys {
		keys[i], numbers[i] = fmt.Sprintf("pod-%06d", random.IntN(million)), numberOf(random.IntN(1<<30))
	}
	i := 0
	for b.Loop() {
		tree.Set(keys[i%len(keys)], numbers[(i*7)%len(keys)])
		i++
	}
}

// BenchmarkWindow reads the 50 keys in the middle of a million.
func BenchmarkWindow(b *testing.B) {
	tree := filled(million)
	var last []byte
	for b.Loop() {
		n := 0
		for _, key := range tree.From(million / 2) {
			if last = key; n == 49 {
				break
			}
			n++
		}
	}
	if bytes.Equal(last, nil) {
		b.Fatal("the window is empty")
	}
}
