package document

import "bytes"

// Finder finds the text of what lies at certain places in values.
//
// Static after construction.
type Finder struct {
	root finding
	n    int
}

// finding is a place to which a path leads.
type finding struct {
	names    []string
	children []*finding
	ends     []int // indices of the paths that end here
	below    []int // indices of the paths that end here or below
}

// NewFinder returns a Finder of the ends of paths, none of which is empty.
func NewFinder(paths []Path) *Finder {
	f := &Finder{n: len(paths)}
	for i, at := range paths {
		n := &f.root
		for _, name := range at {
			n = n.child(name)
			n.below = append(n.below, i)
		}
		n.ends = append(n.ends, i)
	}
	return f
}

// child returns the place of a member, which it makes if there is none.
func (n *finding) child(name string) *finding {
	for i := range n.names {
		if n.names[i] == name {
			return n.children[i]
		}
	}
	made := &finding{}
	n.names, n.children = append(n.names, name), append(n.children, made)
	return made
}

// Find returns, for each path, the text of what lies at its end in a value, which is JSON text;
// nil if there is nothing. Of a member that is in its object twice the last one counts. It sets the elements of found,
// which has as many as there are paths. What no path leads to is not checked. If the value is not JSON, nothing is
// found, and ok is false.
func (f *Finder) Find(value []byte, found [][]byte) (ok bool) {
	clear(found)
	s := scanner{text: value}
	if s.peek() != '{' {
		return true
	}
	if err := f.root.find(&s, found); err != nil || s.peek() != 0 {
		clear(found)
		return false
	}
	return true
}

// find reads an object.
func (n *finding) find(s *scanner, found [][]byte) error {
	s.at++
	for first := true; ; first = false {
		if more, err := s.more(first, '}'); !more {
			return err
		}
		raw, err := s.name()
		if err != nil {
			return err
		}
		i, err := n.index(raw)
		if err != nil {
			return err
		}
		if i < 0 {
			if _, err := s.skip(); err != nil {
				return err
			}
			continue
		}
		for _, j := range n.children[i].below {
			found[j] = nil // of a member of the same name before
		}
		if err := n.children[i].read(s, found); err != nil {
			return err
		}
	}
}

// read reads the value of a member to which a path leads.
func (n *finding) read(s *scanner, found [][]byte) error {
	s.peek() // passes white space
	began := s.at
	if len(n.children) > 0 && s.peek() == '{' {
		if err := n.find(s, found); err != nil {
			return err
		}
	} else if _, err := s.skip(); err != nil {
		return err
	}
	for _, i := range n.ends {
		found[i] = s.text[began:s.at]
	}
	return nil
}

// index returns which child a member is, by its name as it is written; -1: no path leads there.
func (n *finding) index(raw []byte) (int, error) {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		name, err := unquote(raw)
		if err != nil {
			return -1, err
		}
		inner = []byte(name)
	}
	for i := range n.names {
		if n.names[i] == string(inner) {
			return i, nil
		}
	}
	return -1, nil
}

// Text returns the string that a JSON text is; false if it is none.
func Text(raw []byte) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	text, err := unquote(raw)
	return text, err == nil
}
