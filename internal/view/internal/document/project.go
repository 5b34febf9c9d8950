package document

// Project returns what is left of a JSON value if only what lies at the paths is kept: in
// the order and with the bytes of the value, white space around members and elements
// aside. A path goes through arrays, into each of their elements. Objects and arrays on
// the way stay, if only as {} or []; what else is on the way to what is kept goes, also as an
// element of an array. Hidden paths are left out of what is kept. Of a value that is neither an
// object nor an array nothing is left, unless all is kept and nothing is hidden: null.
//
// A member that is in its object several times stays as often.
func Project(value []byte, paths *Paths) ([]byte, error) {
	p := projector{scanner: scanner{text: value}, out: make([]byte, 0, len(value)), hiding: paths.hiding}
	root := &paths.root
	c := p.peek()
	shown := root.shows(false) && (!paths.hiding || c == '{' || c == '[')
	kept, err := p.value(root, shown, 0)
	if err == nil && p.peek() != 0 {
		err = errMalformed
	}
	switch {
	case err != nil:
		return nil, err
	case !kept:
		return []byte("null"), nil
	}
	return p.out, nil
}

// projector copies what is kept of a value.
type projector struct {
	scanner
	out    []byte
	hiding bool // some path is hidden
}

// value copies what is kept of a value at a node, and reports whether anything is. shown: what no
// path below says anything about is kept.
func (p *projector) value(n *Node, shown bool, depth int) (kept bool, err error) {
	switch c := p.peek(); {
	case depth > maxDepth:
		return false, errMalformed
	case n.leaf(), shown && !p.hiding:
	case c == '{':
		return true, p.members(c, '}', func() (bool, error) { return p.member(n, shown, depth) })
	case c == '[':
		return true, p.members(c, ']', func() (bool, error) { return p.value(n, shown, depth+1) })
	}
	raw, err := p.skip()
	if shown {
		p.out = append(p.out, raw...)
	}
	return shown, err
}

// members copies an object or an array, of which one copies a member or an element.
func (p *projector) members(open, close byte, one func() (bool, error)) error {
	p.at++
	p.out = append(p.out, open)
	none := len(p.out)
	for first := true; ; first = false {
		more, err := p.more(first, close)
		if err != nil {
			return err
		}
		if !more {
			p.out = append(p.out, close)
			return nil
		}
		before := len(p.out)
		if before > none {
			p.out = append(p.out, ',')
		}
		kept, err := one()
		if err != nil {
			return err
		}
		if !kept {
			p.out = p.out[:before]
		}
	}
}

// member copies what is kept of a member.
func (p *projector) member(n *Node, shown bool, depth int) (kept bool, err error) {
	raw, err := p.name()
	if err != nil {
		return false, err
	}
	child, err := n.child(raw)
	if err != nil {
		return false, err
	}
	p.out = append(append(p.out, raw...), ':')
	return p.value(child, child.shows(shown), depth+1)
}
