package access

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/watchtide/watchtide/internal/view"
)

// Policy is a compiled policy.
//
// Static after Compile, except for its caches. All methods may be called from any goroutine.
// Principals are identified by their addresses, and must not change.
type Policy struct {
	// Static after Compile.
	roles   []*role
	watches map[string]*rules

	// Atomic.
	failures atomic.Uint64

	// These lock themselves.
	subjects *recent[*Principal, *subject]
	reading  *recent[string, *reading]
}

// Sizes of the caches of a policy: the number of principals, and that of different sets of
// grants. Each entry takes some KiB, and that of a principal with many claims more.
const (
	subjectsKept = 4096
	readingsKept = 4096
	subjectBytes = 2 << 10 // besides the claims
	readingBytes = 4 << 10 // besides what follows from the values of its principals
	// readingBytesPerByte is what follows from a byte of these: the texts of grants, compiled.
	readingBytesPerByte = 20
	// mostBytes is about how much those of either kind take.
	mostBytes = 64 << 20
)

func newPolicy() *Policy {
	return &Policy{
		watches:  map[string]*rules{},
		subjects: newRecent[*Principal, *subject](subjectsKept, mostBytes),
		reading:  newRecent[string, *reading](readingsKept, mostBytes),
	}
}

// EmptyPolicy returns a policy that allows nothing.
func EmptyPolicy() *Policy { return newPolicy() }

// Failures returns how many expressions have failed. One is counted once for all principals that
// have the same values for it while they are remembered, and once for each write or delete that
// it is to decide. Those of a nil *Policy are none.
func (p *Policy) Failures() uint64 {
	if p == nil {
		return 0
	}
	return p.failures.Load()
}

// reading is what may be read of a watch. All principals with equal grants share it. Static
// after construction.
type reading struct {
	grants     []view.Grant // never nil
	rules      []Allowing   // of the grants
	definition *view.Definition
}

// Allowing is a rule that allows something.
type Allowing struct {
	Rule int    // its number, from 1
	Role string // the name of its role
}

// standing is what one principal may do with a watch. Static after construction.
type standing struct {
	*reading
	writes, deletes bool // some rule could allow it; only what is read can be deleted
}

// HasRole reports whether there is a role.
func (p *Policy) HasRole(name string) bool {
	return slices.ContainsFunc(p.roles, func(r *role) bool { return r.name == name })
}

// Holds reports whether a principal holds a role.
func (p *Policy) Holds(who *Principal, name string) bool {
	s := p.subject(who)
	for r := range s.held {
		if r.name == name {
			return true
		}
	}
	return false
}

// Grants returns the grants of a principal for a watch. The list is empty, but not nil, if no
// rule applies; then the result is false.
func (p *Policy) Grants(who *Principal, watch string) ([]view.Grant, bool) {
	s := p.standing(who, watch)
	return s.grants, len(s.grants) > 0
}

// View returns the definition of what a principal may read of a watch, which
// view.Definition.Narrow can narrow. All principals with equal grants share it. false: the
// principal may read nothing.
func (p *Policy) View(who *Principal, watch string) (*view.Definition, bool) {
	s := p.standing(who, watch)
	return s.definition, len(s.grants) > 0
}

// Readers returns the rules that allow a principal to read what View selects. The result must
// not be modified.
func (p *Policy) Readers(who *Principal, watch string) []Allowing {
	return p.standing(who, watch).rules
}

// Visible reports whether a principal may know that a watch exists: some rule could let it
// read or write a resource.
func (p *Policy) Visible(who *Principal, watch string) bool {
	s := p.standing(who, watch)
	return len(s.grants) > 0 || s.writes
}

// Changes reports whether some rule could allow a principal to write or delete a resource of a
// watch.
func (p *Policy) Changes(who *Principal, watch string) bool {
	s := p.standing(who, watch)
	return s.writes || s.deletes
}

// rulesOf returns the rules of a watch; nil: there are none.
func (p *Policy) rulesOf(watch string) *rules {
	if p == nil || p.watches[watch] == nil || len(p.watches[watch].all) == 0 && p.watches[watch].cluster == nil {
		return nil
	}
	return p.watches[watch]
}

// Cluster returns the resource of a Kubernetes cluster that says who may read what of a watch, and the
// path of the labels of its objects; false: the rules say it. A policy itself allows nothing then.
func (p *Policy) Cluster(watch string) (of ClusterResource, labelsAt string, ok bool) {
	w := p.rulesOf(watch)
	if w == nil || w.cluster == nil {
		return ClusterResource{}, "", false
	}
	return *w.cluster, w.labelsAt, true
}

// nothing is the standing of a principal in a watch without rules.
var nothing = func() *standing {
	definition, err := view.Parse(view.Params{Grants: []view.Grant{}})
	if err != nil {
		panic(err)
	}
	return &standing{reading: &reading{grants: []view.Grant{}, definition: definition}}
}()

// standing returns what a principal may do with a watch, and caches it.
func (p *Policy) standing(who *Principal, watch string) *standing {
	w := p.rulesOf(watch)
	if w == nil {
		return nothing
	}
	s := p.subject(who)
	s.mu.Lock()
	known := s.watches[watch]
	s.mu.Unlock()
	if known != nil {
		return known
	}
	made := &standing{reading: p.read(s, w)}
	for _, r := range w.all {
		made.writes = made.writes || s.could(r, r.write)
		made.deletes = made.deletes || len(made.grants) > 0 && s.could(r, r.delete)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[watch] = made
	return made
}

// could reports whether an expression of a rule could be true for a principal.
func (s *subject) could(r rule, x *view.Expression) bool {
	given, held := s.held[r.role]
	return held && x != nil && !x.Never(x.Bind(given))
}

// bound is the expression of a rule that applies to a principal.
type bound struct {
	number  int // of the rule, from 1
	rule    rule
	binding *view.Binding
}

// read returns what a principal may read. It is made once for all principals with the same
// values.
func (p *Policy) read(s *subject, w *rules) *reading {
	key := binary.AppendUvarint(nil, uint64(len(w.name)))
	key = append(key, w.name...)
	var all []bound
	for i, r := range w.all {
		given, held := s.held[r.role]
		if !held || r.read == nil {
			continue
		}
		b := bound{i + 1, r, r.read.Bind(given)}
		all = append(all, b)
		key = binary.AppendUvarint(key, uint64(i))
		key = binary.AppendUvarint(key, uint64(len(b.binding.Key())))
		key = append(key, b.binding.Key()...)
	}
	if known, ok := p.reading.get(string(key)); ok {
		return known
	}
	return p.reading.put(string(key), p.newReading(w, all), readingBytes+readingBytesPerByte*len(key))
}

// newReading turns the rules that apply into grants. A rule that cannot become a filter, or
// with which the grants would be too long, does not apply.
func (p *Policy) newReading(w *rules, all []bound) *reading {
	r := &reading{grants: []view.Grant{}}
	size := 0
	for _, b := range all {
		g, some, err := b.rule.grant(b.binding)
		if err != nil || !some && b.binding.Failed() {
			p.failures.Add(1)
		}
		if err != nil || !some {
			continue
		}
		length := len(g.Filter)
		for _, field := range slices.Concat(g.Fields, g.Except) {
			length += len(field)
		}
		if size+length > view.MaxGrantsText {
			p.failures.Add(1)
			continue
		}
		size += length
		r.grants = append(r.grants, g)
		r.rules = append(r.rules, Allowing{b.number, b.rule.role.name})
	}
	definition, err := view.Parse(view.Params{Grants: r.grants, LabelsAt: w.labelsAt})
	if err != nil {
		p.failures.Add(1)
		return nothing.reading
	}
	r.definition = definition
	return r
}
