package order

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Builder makes a Tree of many keys at once, in a fraction of the time that Set takes for them, and with full leaves. It sorts
// keys as they are added, in short runs, and then merges the runs. Only the first
// call of Merge, which makes the hash table, and Tree, which makes the nodes above the leaves, take longer with more keys.
//
// The zero value is empty. A Builder is owned by one goroutine.
type Builder struct {
	tree Tree       // has the records; the other keys of it are those that were merged
	runs [][]uint32 // handles in order
	run  []head     // those after them, not sorted
	n    int        // keys

	// While the runs are merged.
	skip   int     // bytes with which all items begin
	heads  []head  // the first of each run that is not merged
	losers []int32 // a tournament of the runs: at 0 the one with the least head, and at each inner node, i.e. 1 on, the one that has lost there
	leaves []*node // of the tree
}

// head is a record, with the bytes of its item by which most comparisons are decided.
type head struct {
	prefix uint64
	h      uint32 // 0: there is none, and so it comes last
}

// runMost is the most keys of a run: sorting them takes some 100 µs, and a million keys have so few runs that their heads lie in
// the cache of the processor.
const runMost = 1024

// Add adds a key, which was not added before, with its sort key.
func (b *Builder) Add(key string, sortKey []byte) {
	b.run = append(b.run, head{h: b.tree.records.add(sortKey, key)})
	if b.n++; len(b.run) == runMost {
		b.endRun()
	}
}

// Bytes is how much memory the builder takes.
func (b *Builder) Bytes() int64 {
	return b.tree.Bytes() + 4*int64(b.n) + headBytes*int64(cap(b.run)+len(b.heads)) + 4*int64(len(b.losers))
}

const headBytes = 16

// endRun sorts the run.
func (b *Builder) endRun() {
	if len(b.run) == 0 {
		return
	}
	first := b.item(b.run[0])
	skip := len(first)
	for _, at := range b.run {
		skip = common(first[:skip], b.item(at))
	}
	for i := range b.run {
		b.run[i] = b.head(b.run[i].h, skip)
	}
	slices.SortFunc(b.run, b.compare)
	run := make([]uint32, len(b.run))
	for i, at := range b.run {
		run[i] = at.h
	}
	b.runs, b.run = append(b.runs, run), b.run[:0]
}

func (b *Builder) item(at head) []byte { return b.tree.records.item(at.h) }

// common returns how many bytes two texts have in common at their beginning.
func common(x, y []byte) (n int) {
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}

// head returns the head of a record. Its prefix begins after the bytes with which all items begin that it is compared with.
func (b *Builder) head(h uint32, skip int) head {
	var first [8]byte
	rest := b.tree.records.item(h)[skip:]
	if len(rest) >= len(first) {
		return head{binary.BigEndian.Uint64(rest), h}
	}
	copy(first[:], rest)
	return head{binary.BigEndian.Uint64(first[:]), h}
}

func (b *Builder) compare(x, y head) int {
	if x.prefix != y.prefix {
		return cmp.Compare(x.prefix, y.prefix)
	}
	if x.h == 0 || y.h == 0 {
		return cmp.Compare(y.h, x.h)
	}
	return bytes.Compare(b.item(x), b.item(y))
}

// Merge merges so many more keys. It reports whether the tree has all of them. No key can be added after its first call.
func (b *Builder) Merge(keys int) (done bool) {
	if b.heads == nil {
		b.begin()
	}
	for ; keys > 0 && b.tree.byKey.n < b.n; keys-- {
		run := b.losers[0]
		b.append(b.heads[run].h)
		b.heads[run] = b.next(run)
		b.play(run)
	}
	return b.tree.byKey.n == b.n
}

// begin begins to merge.
func (b *Builder) begin() {
	b.endRun()
	b.run = nil
	b.heads, b.losers = make([]head, len(b.runs)), make([]int32, len(b.runs))
	if b.n == 0 {
		return
	}
	b.skip = b.shared()
	b.tree.byKey = newTable(b.n)
	for run := range b.runs {
		b.heads[run], b.losers[run] = b.next(int32(run)), -1
	}
	for run := range b.runs {
		b.play(int32(run))
	}
}

// shared returns how many bytes all items have in common at their beginning: the first and the last one of each run have no more.
func (b *Builder) shared() int {
	of := b.tree.records.item(b.runs[0][0])
	for _, run := range b.runs {
		of = of[:common(of, b.tree.records.item(run[0]))]
		of = of[:common(of, b.tree.records.item(run[len(run)-1]))]
	}
	return len(of)
}

// next takes the next head from a run.
func (b *Builder) next(run int32) head {
	left := b.runs[run]
	if len(left) == 0 {
		return head{prefix: math.MaxUint64}
	}
	b.runs[run] = left[1:]
	return b.head(left[0], b.skip)
}

// play lets a run play, from its leaf to the root. Where none has played yet, it waits for its opponent.
func (b *Builder) play(run int32) {
	for at := (int(run) + len(b.losers)) / 2; at > 0; at /= 2 {
		switch other := b.losers[at]; {
		case other < 0:
			b.losers[at] = run
			return
		case b.compare(b.heads[other], b.heads[run]) < 0:
			b.losers[at], run = run, other
		}
	}
	b.losers[0] = run
}

// append appends a record to the tree.
func (b *Builder) append(h uint32) {
	n := len(b.leaves)
	if n == 0 || len(b.leaves[n-1].items) == leafMost {
		b.leaves = append(b.leaves, b.tree.newLeaf())
		n++
	}
	b.leaves[n-1].items = append(b.leaves[n-1].items, h)
	b.tree.byKey.put(b.tree.keyOf(h), h)
	b.tree.byKey.n++
}

// Tree returns the tree, once Merge has merged all keys. The builder is of no more use.
func (b *Builder) Tree() Tree {
	level := b.leaves
	for len(level) > 1 {
		level = parents(level)
	}
	if len(level) > 0 {
		b.tree.root = level[0]
	}
	return b.tree
}

// parents returns nodes that have the given ones below them, each about as many.
func parents(kids []*node) (nodes []*node) {
	for n := (len(kids) + kidsMost - 1) / kidsMost; n > 0; n-- {
		some := kids[:len(kids)/n]
		kids = kids[len(some):]
		p := &node{kids: slices.Clone(some)}
		for _, kid := range some {
			p.items, p.counts = append(p.items, kid.items[0]), append(p.counts, uint32(kid.count()))
		}
		nodes = append(nodes, p)
	}
	return nodes
}
