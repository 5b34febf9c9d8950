package streamtest

import "fmt"

// SameValues reports whether another state has the same keys with the same values, whatever their revisions are.
func (s State) SameValues(as State) bool {
	if len(s) != len(as) {
		return false
	}
	for key, v := range s {
		if other, has := as[key]; !has || other.Value != v.Value {
			return false
		}
	}
	return true
}

// Differs describes how a state differs from all that the upstream had at a revision, in any of its orders, and from later ones
// that hold nothing newer: a client knows the newest revision of what it holds, which may be older than its position. Empty: it
// is one of them. Only keys and values are compared, since a client that resumes by digest may have the revisions of another
// order. Deletes that have no revision of their own may be known or not.
func (t *Truth) Differs(revision uint64, s State) (why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	why = "there was no such revision"
	for _, e := range t.epochs {
		for _, one := range append(e.claimed(claim{revision: revision, mixed: true}), e.likeAt(revision)...) {
			if why = one.differs(s); why == "" {
				return ""
			}
		}
	}
	return why
}

// differs describes the first key that a state has not as claimed.
func (c claimed) differs(s State) string {
	for _, key := range sortedKeys(s, c.state) {
		held, has := s[key]
		want, wanted := c.state[key]
		either, may := c.either[key]
		switch {
		case has && wanted && held.Value == want.Value, has && may && held.Value == either.Value:
		case has && wanted:
			return fmt.Sprintf("%q is %s, want %s", key, held.Value, want.Value)
		case has:
			return fmt.Sprintf("%q is extra", key)
		default:
			return fmt.Sprintf("%q is missing", key)
		}
	}
	return ""
}
