package document

// Hide makes Project leave out what is at a path and below it. A path that was added below it
// still counts.
func (p *Paths) Hide(at Path) {
	p.along(at, 1).hides = true
	p.hiding = true
}

// Union returns the paths with which Project keeps what it keeps with any of some others.
func Union(all []*Paths) *Paths {
	var roots []place
	hiding := false
	for _, p := range all {
		roots = append(roots, place{&p.root, p.root.shows(false)})
		hiding = hiding || p.hiding
	}
	return &Paths{root: *join(roots, false), hiding: hiding}
}

// place is a node of one of the paths that are joined.
type place struct {
	node  *Node
	shown bool
}

// shows reports whether Project keeps a scalar at a node, given whether it does above. A nil node
// is a place that no path leads to.
func (n *Node) shows(above bool) bool {
	switch {
	case n == nil:
		return above
	case n.hides:
		return false
	}
	return above || n.ends > 0
}

// leaf reports whether all that is at a node and below it is kept, or all of it goes.
func (n *Node) leaf() bool { return n == nil || len(n.children)+len(n.named) == 0 }

// each calls a function with each child.
func (n *Node) each(do func(name string, child *Node)) {
	for _, c := range n.children {
		do(c.name, c.node)
	}
	for name, child := range n.named {
		do(name, child)
	}
}

// join returns the union of some nodes for the same place. rest: other paths keep all of it.
func join(of []place, rest bool) *Node {
	out := &Node{}
	shown := 0
	below := map[string][]place{}
	for _, p := range of {
		if p.shown {
			shown++
		}
		p.node.each(func(name string, child *Node) { below[name] = append(below[name], place{child, child.shows(p.shown)}) })
	}
	out.set(rest || shown > 0)
	for name, some := range below {
		others := shown // of those that show this place, the ones without such a child
		for _, p := range of {
			if p.shown && p.node.get(name) != nil {
				others--
			}
		}
		child := join(some, rest || others > 0)
		if !child.leaf() || child.shows(false) != out.shows(false) {
			out.put(name, child)
		}
	}
	return out
}

// set makes a node keep, or leave out, what is there.
func (n *Node) set(shown bool) {
	if n.hides = !shown; shown {
		n.ends = 1
	}
}
