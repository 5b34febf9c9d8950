// Package document reads only as much of a JSON value as is asked for: what lies at
// certain paths, or what is left of it if only certain paths are kept.
package document

import (
	"slices"

	"github.com/watchtide/watchtide/stream/view/internal/path"
)

// Paths is a set of paths into values, as a tree, in which a path can be several times.
//
// Its zero value is the empty set. It may be read by any number of goroutines, and be
// changed by one while nobody reads it.
type Paths struct{ root Node }

// Node is a place in values to which a path leads.
type Node struct {
	children map[string]*Node
	through  int // paths that end here or below
	ends     int // paths that end here
	watched  int // of those, how many want a Visit
}

// Add adds a path.
func (p *Paths) Add(at path.Path) { p.along(at, 1).ends++ }

// Remove removes a path that was added once.
func (p *Paths) Remove(at path.Path) {
	p.along(at, -1).ends--
	p.prune(at)
}

// Watch adds a path and wants a Visit of each scalar that is found there.
func (p *Paths) Watch(at path.Path) *Node {
	n := p.along(at, 1)
	n.ends++
	n.watched++
	return n
}

// Unwatch undoes one Watch.
func (p *Paths) Unwatch(at path.Path) {
	n := p.along(at, -1)
	n.ends--
	n.watched--
	p.prune(at)
}

// Empty reports whether there is no path.
func (p *Paths) Empty() bool { return p.root.through == 0 }

// along returns the node of a path and counts it on the way.
func (p *Paths) along(at path.Path, count int) *Node {
	n := &p.root
	n.through += count
	for _, name := range at {
		child := n.children[name]
		if child == nil {
			child = &Node{}
			if n.children == nil {
				n.children = map[string]*Node{}
			}
			n.children[name] = child
		}
		n = child
		n.through += count
	}
	return n
}

// prune drops the first node on a path through which none leads any more.
func (p *Paths) prune(at path.Path) {
	n := &p.root
	for _, name := range at {
		child := n.children[name]
		if child.through == 0 {
			delete(n.children, name)
			return
		}
		n = child
	}
}

// Find returns the node of a path; nil if no path leads there.
func (p *Paths) Find(at path.Path) *Node {
	n := &p.root
	for _, name := range at {
		if n = n.children[name]; n == nil {
			return nil
		}
	}
	return n
}

// child returns the node of a member by the bytes of its name.
func (n *Node) child(raw []byte) (*Node, error) {
	if n == nil || len(n.children) == 0 {
		return nil, nil
	}
	if slices.Contains(raw, '\\') {
		name, err := unquote(raw)
		return n.children[name], err
	}
	return n.children[string(raw[1:len(raw)-1])], nil
}
