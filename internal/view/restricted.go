package view

import (
	"cmp"
	"errors"
	"slices"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/stream"
)

var errHidden = errors.New("the resource may not be seen")

// Restricts reports whether the definition has grants, so that a client may not know what it
// leaves out.
func (d *Definition) Restricts() bool { return d.grants != nil }

// Hides reports whether the grants can hide resources. Nobody may learn that a hidden key
// exists.
func (d *Definition) Hides() bool { return d.grants.hide() }

// Visibility returns how much of a resource the grants allow to be seen, whatever else the
// definition selects. An error is the Failure of a grant, which then allows nothing.
func (d *Definition) Visibility(r stream.Resource) (Visibility, error) {
	if d.grants == nil {
		return Whole, nil
	}
	e := extraction{paths: &d.trees().reads}
	e.set(&r)
	held, err := d.grants.of(&e, d.labelsAt)
	return held.visibility(), err
}

// Keeps reports whether the view keeps the whole value of a resource that it has. The result
// does not depend on the content of the parts that the definition leaves out.
func (d *Definition) Keeps(r stream.Resource) bool {
	if len(d.fields) > 0 || !d.Projects() {
		return len(d.fields) == 0
	}
	visibility, _ := d.Visibility(r)
	return visibility == Whole
}

// Narrow returns the definition of what p selects of what the grants of d allow. It has the
// grants of d, which are not compiled again, and its place of labels. An error is an *Error.
func (d *Definition) Narrow(p Params) (*Definition, error) {
	p.Grants, p.LabelsAt = nil, d.labelsAt.String()
	return define(p, d.grants)
}

// matchesGranted is matches for a definition with grants: the other parameters see only what
// the grants leave of the resource. An error may be that of a grant although another one allows
// the resource.
func (d *Definition) matchesGranted(e *extraction) (bool, error) {
	held, failed := d.grants.of(e, d.labelsAt)
	if held.visibility() == Hidden {
		return false, failed
	}
	if held.whole || !d.labeled && len(d.reads) == 0 {
		selected, err := d.selects(e)
		return selected, cmp.Or(err, failed)
	}
	r, err := d.grants.project(*e.resource, held)
	if err != nil {
		return false, NotJSON
	}
	left := extraction{paths: &d.trees().reads}
	left.set(&r)
	selected, err := d.selects(&left)
	e.spent, e.asked = e.spent+left.spent, e.asked+left.asked
	return selected, cmp.Or(err, failed)
}

// projectGranted returns what the grants allow to be seen of a resource.
func (d *Definition) projectGranted(r stream.Resource) (stream.Resource, error) {
	if d.grants == nil {
		return r, nil
	}
	e := extraction{paths: &d.trees().reads}
	e.set(&r)
	held, _ := d.grants.of(&e, d.labelsAt)
	return d.grants.project(r, held)
}

// grantPlaces returns, for each grant, the sets of places any of which is enough to find its
// resources; false: one of the grants has none.
func (d *Definition) grantPlaces() (of [][][]place, ok bool) {
	if d.grants == nil {
		return nil, false
	}
	for _, g := range d.grants.all {
		sets := g.places(d.labelsAt)
		if len(sets) == 0 {
			return nil, false
		}
		of = append(of, sets)
	}
	return of, true
}

// places returns the sets of places any of which is enough to find the resources of a grant.
func (g *grant) places(labelsAt document.Path) (sets [][]place) {
	if g.filter != nil {
		var prefix string
		var values [][]place
		if sets, prefix, values = filterPlaces(g.filter, labelsAt); prefix != "" {
			sets = append(sets, []place{{prefix: &prefix}})
		}
		sets = append(sets, values...)
	}
	if g.within == nil {
		return sets
	}
	within := []place{}
	for name := range g.within {
		prefix := name + "/"
		within = append(within, place{prefix: &prefix})
	}
	return append(sets, within)
}

// appendGrants appends the grants to the encoding of a definition. It appends nothing if there
// are none.
func (d *Definition) appendGrants(part func(string), count func(int)) {
	if d.grants == nil {
		return
	}
	count(len(d.grants.all))
	for _, g := range d.grants.params() {
		part(g.Filter)
		count(len(g.Fields))
		for _, field := range g.Fields {
			part(field)
		}
	}
	d.appendExcept(part, count)
	d.appendNamespaces(part, count)
}

// appendNamespaces appends the namespaces of the grants, if any has some: it begins with a word, so that it
// is never what appendExcept appends.
func (d *Definition) appendNamespaces(part func(string), count func(int)) {
	if !slices.ContainsFunc(d.grants.all, func(g grant) bool { return g.within != nil }) {
		return
	}
	part("namespaces")
	for _, g := range d.grants.all {
		if g.within == nil {
			count(0)
			continue
		}
		count(1 + len(g.within))
		for _, name := range g.namespaces() {
			part(name)
		}
	}
}

// appendExcept appends what the grants leave out, if any does.
func (d *Definition) appendExcept(part func(string), count func(int)) {
	all := d.grants.params()
	if !slices.ContainsFunc(all, func(g Grant) bool { return len(g.Except) > 0 }) {
		return
	}
	for _, g := range all {
		count(len(g.Except))
		for _, field := range g.Except {
			part(field)
		}
	}
}
