package access

import (
	"maps"
	"net/http"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// Decision says whether a resource may be written or deleted.
type Decision struct {
	Allowed bool
	// Status is 403 or 404 if it is not allowed. With 404, the answer must be the same as for a
	// resource that does not exist, even to a request with a condition: the resource or the
	// whole watch is hidden, or there is no such resource.
	Status int
	// Rule is the number, from 1, of the first rule that allows it, and Role the name of its
	// role; 0 and empty: none does.
	Rule int
	Role string
	// Reason says why it is not allowed, for operators.
	Reason string
}

// Reasons for refusals.
const (
	reasonNoWatch = "no rule of the watch applies"
	reasonNoRule  = "no rule allows it"
	reasonPart    = "only a part of the resource may be read"
	reasonHidden  = "the resource may not be read"
	reasonAbsent  = "there is no such resource"
)

func forbidden(reason string) Decision {
	return Decision{Status: http.StatusForbidden, Reason: reason}
}

func unseen(reason string) Decision { return Decision{Status: http.StatusNotFound, Reason: reason} }

// Write decides whether a principal may write a resource: old is the existing one, nil if there
// is none, and updated replaces it. A principal that may read only a part of a resource must
// not replace it. Only the success of a write tells a hidden resource from none.
func (p *Policy) Write(who *Principal, watch, key string, old, updated *stream.Resource) Decision {
	s := p.standing(who, watch)
	switch {
	case !p.Visible(who, watch):
		return unseen(reasonNoWatch)
	case !s.writes:
		return forbidden(reasonNoRule)
	}
	names := changed{key: key, old: old, updated: updated}
	switch visibility := p.visibility(s.reading, old); {
	case old != nil && visibility == view.Part:
		return forbidden(reasonPart)
	case old != nil && visibility == view.Hidden:
		names.old = nil
		if d := p.decide(who, watch, writes, names); !d.Allowed {
			return d
		}
		return unseen(reasonHidden)
	}
	return p.decide(who, watch, writes, names)
}

// Delete decides whether a principal may delete a resource: old is the existing one, nil if
// there is none. Hidden resources and those that do not exist have the same answer.
func (p *Policy) Delete(who *Principal, watch, key string, old *stream.Resource) Decision {
	s := p.standing(who, watch)
	switch {
	case !p.Visible(who, watch):
		return unseen(reasonNoWatch)
	case !s.deletes:
		return forbidden(reasonNoRule)
	case old == nil:
		return unseen(reasonAbsent)
	}
	switch p.visibility(s.reading, old) {
	case view.Hidden:
		return unseen(reasonHidden)
	case view.Part:
		return forbidden(reasonPart)
	}
	return p.decide(who, watch, deletes, changed{key: key, old: old})
}

// visibility returns how much of a resource may be seen.
func (p *Policy) visibility(r *reading, old *stream.Resource) view.Visibility {
	if old == nil {
		return view.Hidden
	}
	visibility, err := r.definition.Visibility(*old)
	if err != nil {
		p.failures.Add(1)
	}
	return visibility
}

// changed is a change to decide about.
type changed struct {
	key          string
	old, updated *stream.Resource
}

// The conditions of a rule.
func writes(r rule) *view.Expression  { return r.write }
func deletes(r rule) *view.Expression { return r.delete }

// decide asks the rules, in their order, whether they allow a change.
func (p *Policy) decide(who *Principal, watch string, ask func(rule) *view.Expression, c changed) Decision {
	s := p.subject(who)
	var old, updated decoded
	for i, r := range p.rulesOf(watch).all {
		given, held := s.held[r.role]
		x := ask(r)
		if !held || x == nil {
			continue
		}
		names := maps.Clone(given)
		names["key"] = c.key
		if x.Reads("old") {
			old.into(names, "old", c.old)
		}
		if x.Reads("new") {
			updated.into(names, "new", c.updated)
		}
		v, err := x.Value(names)
		if err != nil {
			p.failures.Add(1)
		}
		if v == true && err == nil {
			return Decision{Allowed: true, Rule: i + 1, Role: r.role.name}
		}
	}
	return forbidden(reasonNoRule)
}

// decoded is a value that is decoded once, if some rule reads it.
type decoded struct {
	done  bool
	value any
	err   error
}

// into gives a name the value of a resource: null without one. A value that is not JSON, or
// has a member twice, is left out.
func (d *decoded) into(names map[string]any, name string, r *stream.Resource) {
	if !d.done {
		d.done = true
		if r != nil {
			d.value, d.err = view.Decode(*r)
		}
	}
	if d.err == nil {
		names[name] = d.value
	}
}
