// Package document reads only as much of a JSON value as is asked for: what lies at
// certain paths, or what is left of it if only certain paths are kept.
//
// # Paths
//
// It has the syntax of paths into JSON values.
//
// A path is the names of members from the root on, with dots between them:
//
//	spec.node
//	metadata.labels."app.kubernetes.io/name"
//
// A name that is empty, or that holds a dot, a comma, a quotation mark, a bracket, a
// backslash, white space or a control character, is written as a JSON string. Several
// paths have commas between them, and spaces around the commas mean nothing. There is no
// step into an array by its index.
package document

import (
	"slices"
)

// Paths is a set of paths into values, as a tree, in which a path can be several times.
//
// Its zero value is the empty set. It may be read by any number of goroutines, and be
// changed by one while nobody reads it.
type Paths struct {
	root   Node
	hiding bool // some path was hidden
}

// Node is a place in values to which a path leads.
type Node struct {
	children []child
	named    map[string]*Node // instead, once there were more than few
	through  int32            // paths that end here or below
	ends     int32            // paths that end here
	watched  int32            // of those, how many want a Visit
	hides    bool             // what is here and below goes, for Project
}

// child is a member to which a path leads.
type child struct {
	name string
	node *Node
}

// few is the number of children up to which they are searched one by one. Most definitions name
// no more, and a map takes more memory than the rest of their paths.
const few = 6

// get returns the node of a member; nil: no path leads there.
func (n *Node) get(name string) *Node {
	if n.named != nil {
		return n.named[name]
	}
	for i := range n.children {
		if n.children[i].name == name {
			return n.children[i].node
		}
	}
	return nil
}

// add adds a node for a member that has none.
func (n *Node) add(name string) *Node {
	added := &Node{}
	n.put(name, added)
	return added
}

// put makes a node that of a member that has none.
func (n *Node) put(name string, added *Node) {
	if n.named == nil && len(n.children) < few {
		n.children = append(n.children, child{name, added})
		return
	}
	if n.named == nil {
		n.named = map[string]*Node{}
		for _, c := range n.children {
			n.named[c.name] = c.node
		}
		n.children = nil
	}
	n.named[name] = added
}

// drop removes a child.
func (n *Node) drop(name string) {
	n.children = slices.DeleteFunc(n.children, func(c child) bool { return c.name == name })
	delete(n.named, name)
}

// Add adds a path.
func (p *Paths) Add(at Path) { p.along(at, 1).ends++ }

// Remove removes a path that was added once.
func (p *Paths) Remove(at Path) {
	p.along(at, -1).ends--
	p.prune(at)
}

// Watch adds a path and wants a Visit of each scalar that is found there.
func (p *Paths) Watch(at Path) *Node {
	n := p.along(at, 1)
	n.ends++
	n.watched++
	return n
}

// Unwatch undoes one Watch.
func (p *Paths) Unwatch(at Path) {
	n := p.along(at, -1)
	n.ends--
	n.watched--
	p.prune(at)
}

// Empty reports whether there is no path.
func (p *Paths) Empty() bool { return p.root.through == 0 }

// along returns the node of a path and counts it on the way.
func (p *Paths) along(at Path, count int32) *Node {
	n := &p.root
	n.through += count
	for _, name := range at {
		child := n.get(name)
		if child == nil {
			child = n.add(name)
		}
		n = child
		n.through += count
	}
	return n
}

// prune drops the first node on a path through which none leads any more.
func (p *Paths) prune(at Path) {
	n := &p.root
	for _, name := range at {
		child := n.get(name)
		if child.through == 0 {
			n.drop(name)
			return
		}
		n = child
	}
}

// Find returns the node of a path; nil if no path leads there.
func (p *Paths) Find(at Path) *Node {
	n := &p.root
	for _, name := range at {
		if n = n.get(name); n == nil {
			return nil
		}
	}
	return n
}

// child returns the node of a member by the bytes of its name.
func (n *Node) child(raw []byte) (*Node, error) {
	if n == nil || len(n.children)+len(n.named) == 0 {
		return nil, nil
	}
	if slices.Contains(raw, '\\') {
		name, err := unquote(raw)
		return n.get(name), err
	}
	return n.ofBytes(raw[1 : len(raw)-1]), nil
}

// ofBytes is like get, without a copy of the name.
func (n *Node) ofBytes(name []byte) *Node {
	if n.named != nil {
		return n.named[string(name)]
	}
	for i := range n.children {
		if n.children[i].name == string(name) {
			return n.children[i].node
		}
	}
	return nil
}
