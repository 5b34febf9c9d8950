package order

import (
	"bytes"
	"iter"
	"slices"
)

// Tree holds keys by their sort keys, and knows how many come before each: a B+ tree whose nodes
// know how many keys are below them. A key takes some 40 bytes for a number and a key of 10 bytes;
// longer texts and keys take what they are longer.
//
// The zero value is empty. A Tree is owned by one goroutine.
type Tree struct {
	records arena
	byKey   table
	root    *node
	nodes   int64 // bytes that the nodes take
}

// node is a leaf, or has nodes below it.
type node struct {
	// items are the handles of a leaf in order, or the first one below each kid.
	items  []uint32
	kids   []*node  // nil: a leaf
	counts []uint32 // of the keys below each kid
}

// The most items of a leaf, and kids of another node.
const (
	leafMost = 128
	kidsMost = 64
)

func (n *node) count() (keys int) {
	if n.kids == nil {
		return len(n.items)
	}
	for _, c := range n.counts {
		keys += int(c)
	}
	return keys
}

func (n *node) most() int {
	if n.kids == nil {
		return leafMost
	}
	return kidsMost
}

// Len is the number of keys.
func (t *Tree) Len() int { return t.byKey.n }

// Bytes is how much memory the tree takes.
func (t *Tree) Bytes() int64 { return t.records.bytes() + int64(len(t.byKey.slots))*4 + t.nodes }

func (t *Tree) keyOf(h uint32) []byte {
	_, key := t.records.parts(h)
	return key
}

// SortKey returns the sort key of a key. It is valid until the tree changes.
func (t *Tree) SortKey(key string) (sortKey []byte, ok bool) {
	_, h := t.byKey.find([]byte(key), t.keyOf)
	if h == 0 {
		return nil, false
	}
	sortKey, _ = t.records.parts(h)
	return sortKey, true
}

// Set gives a key a sort key. It reports whether the key is new, or had another one.
func (t *Tree) Set(key string, sortKey []byte) (changed bool) {
	slot, h := t.byKey.find([]byte(key), t.keyOf)
	if h != 0 {
		if had, _ := t.records.parts(h); bytes.Equal(had, sortKey) {
			return false
		}
		t.remove(slot, h)
	}
	h = t.records.add(sortKey, key)
	t.byKey.add([]byte(key), h, t.keyOf)
	t.insert(h)
	return true
}

// Delete removes a key. It reports whether it was there.
func (t *Tree) Delete(key string) bool {
	slot, h := t.byKey.find([]byte(key), t.keyOf)
	if h == 0 {
		return false
	}
	t.remove(slot, h)
	return true
}

func (t *Tree) remove(slot int, h uint32) {
	t.byKey.remove(slot, t.keyOf)
	t.drop(t.root, t.records.item(h))
	for len(t.root.kids) == 1 {
		t.root = t.root.kids[0]
	}
	if len(t.root.items) == 0 {
		t.root, t.nodes = nil, 0
	}
	t.records.remove(h)
}

// place returns how many of the items of a node come before an item, and whether it is one
// of them.
func (t *Tree) place(n *node, item []byte) (int, bool) {
	return slices.BinarySearchFunc(n.items, item, func(h uint32, item []byte) int { return bytes.Compare(t.records.item(h), item) })
}

// kid returns the place of the kid of a node under which an item is, or belongs.
func (t *Tree) kid(n *node, item []byte) int {
	at, found := t.place(n, item)
	if !found {
		at--
	}
	return max(0, at)
}

// leafBytes and kidBytes are about what a leaf takes, and a kid in its node.
const (
	leafBytes = 80 + 4*leafMost
	kidBytes  = 4 + 4 + 8
)

func (t *Tree) insert(h uint32) {
	if t.root == nil {
		t.root = t.newLeaf()
	}
	right := t.add(t.root, h, t.records.item(h))
	if right == nil {
		return
	}
	left := t.root
	t.root = &node{kids: []*node{left, right}, items: []uint32{left.items[0], right.items[0]}, counts: []uint32{uint32(left.count()), uint32(right.count())}}
}

func (t *Tree) newLeaf() *node {
	t.nodes += leafBytes + kidBytes
	return &node{items: make([]uint32, 0, leafMost)}
}

// add adds an item below a node. It returns the right half of the node if that became too large.
func (t *Tree) add(n *node, h uint32, item []byte) (right *node) {
	if n.kids == nil {
		at, _ := t.place(n, item)
		if len(n.items) < leafMost {
			n.items = slices.Insert(n.items, at, h)
			return nil
		}
		right = t.split(n, at)
		if at > len(n.items) {
			right.items = slices.Insert(right.items, at-len(n.items), h)
		} else {
			n.items = slices.Insert(n.items, at, h)
		}
		return right
	}
	at := t.kid(n, item)
	kid := n.kids[at]
	added := t.add(kid, h, item)
	n.items[at], n.counts[at] = kid.items[0], n.counts[at]+1
	if added == nil {
		return nil
	}
	n.counts[at] = uint32(kid.count())
	n.kids = slices.Insert(n.kids, at+1, added)
	n.items = slices.Insert(n.items, at+1, added.items[0])
	n.counts = slices.Insert(n.counts, at+1, uint32(added.count()))
	if len(n.kids) <= kidsMost {
		return nil
	}
	half := len(n.kids) / 2
	right = &node{items: slices.Clone(n.items[half:]), kids: slices.Clone(n.kids[half:]), counts: slices.Clone(n.counts[half:])}
	clear(n.kids[half:])
	n.items, n.kids, n.counts = n.items[:half], n.kids[:half], n.counts[:half]
	return right
}

// split moves the upper half of a leaf to a new one. Where keys arrive in their order, little is
// moved, so that leaves are full.
func (t *Tree) split(n *node, at int) (right *node) {
	half := len(n.items) / 2
	if at == len(n.items) {
		half = len(n.items) - 1
	}
	right = t.newLeaf()
	right.items = append(right.items, n.items[half:]...)
	n.items = n.items[:half]
	return right
}

// drop removes an item below a node.
func (t *Tree) drop(n *node, item []byte) {
	if n.kids == nil {
		at, _ := t.place(n, item)
		n.items = slices.Delete(n.items, at, at+1)
		return
	}
	at := t.kid(n, item)
	kid := n.kids[at]
	t.drop(kid, item)
	if n.counts[at]--; n.counts[at] == 0 {
		t.forget(n, at)
		return
	}
	n.items[at] = kid.items[0]
	t.merge(n, at)
}

// forget removes a kid of a node.
func (t *Tree) forget(n *node, at int) {
	if n.kids[at].kids == nil {
		t.nodes -= leafBytes + kidBytes
	}
	n.kids, n.items, n.counts = slices.Delete(n.kids, at, at+1), slices.Delete(n.items, at, at+1), slices.Delete(n.counts, at, at+1)
}

// merge merges a kid of a node that has become small with its neighbour, if both fit into one.
func (t *Tree) merge(n *node, at int) {
	kid := n.kids[at]
	if len(kid.items) > kid.most()/4 || len(n.kids) < 2 {
		return
	}
	at = min(at, len(n.kids)-2)
	left, right := n.kids[at], n.kids[at+1]
	if len(left.items)+len(right.items) > left.most()*3/4 {
		return
	}
	left.items = append(left.items, right.items...)
	left.kids, left.counts = append(left.kids, right.kids...), append(left.counts, right.counts...)
	n.counts[at] += n.counts[at+1]
	t.forget(n, at+1)
}

// Rank returns how many keys come before a place in the order, which is a sort key with a key after
// it, and whether a key is there.
func (t *Tree) Rank(item []byte) (rank int, found bool) {
	n := t.root
	for n != nil && n.kids != nil {
		at := t.kid(n, item)
		for _, c := range n.counts[:at] {
			rank += int(c)
		}
		n = n.kids[at]
	}
	if n == nil {
		return 0, false
	}
	at, found := t.place(n, item)
	return rank + at, found
}

// From returns the sort keys and keys from a rank on, in order. They are valid until the tree
// changes.
func (t *Tree) From(rank int) iter.Seq2[[]byte, []byte] {
	return func(yield func(sortKey, key []byte) bool) {
		if t.root != nil {
			t.each(t.root, rank, yield)
		}
	}
}

// each yields what is below a node, after the first ones.
func (t *Tree) each(n *node, skip int, yield func(sortKey, key []byte) bool) bool {
	if n.kids == nil {
		for _, h := range n.items[min(skip, len(n.items)):] {
			if !yield(t.records.parts(h)) {
				return false
			}
		}
		return true
	}
	for i, kid := range n.kids {
		if c := int(n.counts[i]); skip >= c {
			skip -= c
			continue
		}
		if !t.each(kid, skip, yield) {
			return false
		}
		skip = 0
	}
	return true
}
