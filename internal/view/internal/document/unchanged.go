package document

import "encoding/binary"

// Unchanged reports whether a change certainly leaves what lies at the ends of the paths as it is, so that Find finds
// the same in both values: all that differs is within one member to which no path leads. It costs less than Find,
// since it reads no further than that member.
func (f *Finder) Unchanged(before, after []byte) bool {
	first, same := common(before, after)
	if first == len(before) && first == len(after) {
		return true
	}
	n, s := &f.root, scanner{text: before}
	for {
		if s.peek() != '{' || s.at >= first {
			return false
		}
		s.at++
		child, began, found := n.memberAt(&s, first)
		if !found || s.at < len(before)-same {
			return false
		}
		other := scanner{text: after, at: began}
		if _, err := other.skip(); err != nil || other.at-s.at != len(after)-len(before) {
			return false
		}
		switch {
		case child == nil:
			return true
		case len(child.ends) > 0:
			return false
		}
		n, s.at = child, began
	}
}

// memberAt reads an object up to the end of the member whose value has the byte at a place, or ends there. It returns
// where that value begins, and the place to which a path leads; nil: none does.
func (n *finding) memberAt(s *scanner, place int) (child *finding, began int, found bool) {
	for first := true; ; first = false {
		if more, err := s.more(first, '}'); !more || err != nil {
			return nil, 0, false
		}
		raw, err := s.name()
		if err != nil {
			return nil, 0, false
		}
		s.peek() // passes white space
		if began = s.at; began > place {
			return nil, 0, false
		}
		if _, err := s.skip(); err != nil {
			return nil, 0, false
		}
		if s.at < place {
			continue
		}
		i, err := n.index(raw)
		if err != nil {
			return nil, 0, false
		}
		if i >= 0 {
			child = n.children[i]
		}
		return child, began, true
	}
}

// common returns how many bytes two texts have in common at their beginnings, and how many of the others at their
// ends.
func common(a, b []byte) (first, last int) {
	n := min(len(a), len(b))
	for first+8 <= n && binary.LittleEndian.Uint64(a[first:]) == binary.LittleEndian.Uint64(b[first:]) {
		first += 8
	}
	for first < n && a[first] == b[first] {
		first++
	}
	n -= first
	for last+8 <= n && binary.LittleEndian.Uint64(a[len(a)-last-8:]) == binary.LittleEndian.Uint64(b[len(b)-last-8:]) {
		last += 8
	}
	for last < n && a[len(a)-last-1] == b[len(b)-last-1] {
		last++
	}
	return first, last
}
