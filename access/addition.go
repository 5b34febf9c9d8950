package access

import (
	"fmt"
	"maps"
	"slices"

	"github.com/watchtide/watchtide/internal/view"
)

// Addition is a field that one rule leaves out and another one shows: what rules allow adds up.
type Addition struct {
	Watch string
	Rule  int // its number, from 1
	Field string
	By    int // the number of the rule that shows the field
}

// String says it in words.
func (a Addition) String() string {
	return fmt.Sprintf("rule %d leaves out %s, but rule %d shows it", a.Rule, a.Field, a.By)
}

// Additions returns the fields that no rule can leave out for anybody who holds its role: another
// rule shows them, of the same resources, to all of these.
func (p *Policy) Additions() (out []Addition) {
	for _, name := range slices.Sorted(maps.Keys(p.watches)) {
		out = append(out, p.watches[name].additions(func(i, by int) bool {
			return p.watches[name].all[by].forAllOf(&p.watches[name].all[i])
		})...)
	}
	return out
}

// forAllOf reports whether a rule is about all resources of another one, and about all who hold its
// role.
func (r *rule) forAllOf(other *rule) bool {
	if r.read == nil || other.read == nil {
		return false
	}
	everybody := r.role == other.role || r.role.when.String() == "true"
	return everybody && (r.read.String() == "true" || r.role == other.role && r.read.String() == other.read.String())
}

// additions returns the fields that a rule leaves out and another one shows, where both apply, given their indices.
func (w *rules) additions(apply func(i, by int) bool) (out []Addition) {
	for i := range w.all {
		for j := range w.all {
			r, by := &w.all[i], &w.all[j]
			if i == j || len(r.except) == 0 || !apply(i, j) {
				continue
			}
			shows := view.Grant{Fields: by.fields, Except: by.except}
			for _, field := range r.except {
				if shows.Shows(field) {
					out = append(out, Addition{w.name, i + 1, field, j + 1})
				}
			}
		}
	}
	return out
}
