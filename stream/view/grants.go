package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/view/internal/document"
	"github.com/watchtide/watchtide/stream/view/internal/path"
	"github.com/watchtide/watchtide/stream/view/internal/predicate"
)

// Limits of the grants of a definition.
const (
	// MaxGrants is the maximum number of grants.
	MaxGrants = 64
	// MaxGrantsText is the maximum length of all grants together, in bytes.
	MaxGrantsText = 64 << 10
)

// Grant allows a part of a watch to be seen.
type Grant struct {
	// Filter is an expression in CEL, as in Params. It says which resources may be seen: with
	// "true" all of them.
	Filter string
	// Fields are the paths of the values of these resources that may be seen, as in Params.
	// None: the whole value.
	Fields []string

	compiled *predicate.Predicate // what Filter means; nil: Parse compiles it
}

// Sight is how much of a resource may be seen.
type Sight int

// The sights.
const (
	Hidden Sight = iota // nothing, and not that it exists
	Part                // some fields of its value
	Whole               // all of it
)

// grants are the compiled grants of a definition. A nil *grants allows everything.
//
// Static after newGrants, except for what mu guards. Any goroutine may use it.
type grants struct {
	all     []grant     // canonical: sorted, one for each filter
	reads   []path.Path // by each filter: a path below that of another one is needed too
	labeled bool        // some filter reads labels
	narrow  bool        // some grant has fields

	mu     sync.Mutex
	joined map[uint64]*document.Paths // the fields of several grants, by their bits
}

// grant is one compiled Grant.
type grant struct {
	text   string               // of the filter
	filter *predicate.Predicate // nil: true
	fields []path.Path          // none: all
	keeps  document.Paths       // the same
}

// mostJoined is how many unions of fields are remembered.
const mostJoined = 256

var errHidden = errors.New("the resource may not be seen")

// parseGrants reads the grants. It returns nil if one of them allows everything.
func (d *Definition) parseGrants(p Params) error {
	if p.Grants == nil {
		return nil
	}
	g, err := newGrants(p.Grants, p.ValueSize)
	if err != nil {
		return err
	}
	d.grants = g
	return nil
}

// newGrants compiles grants; nil: they allow everything.
func newGrants(all []Grant, valueSize int) (*grants, error) {
	if len(all) > MaxGrants {
		return nil, refuse("grants", "", fmt.Errorf("there are %d grants, and at most %d are allowed", len(all), MaxGrants))
	}
	if err := limitGrants(all); err != nil {
		return nil, err
	}
	byFilter := map[string]grant{}
	for _, one := range all {
		compiled, err := compileGrant(one, valueSize)
		if err != nil {
			return nil, err
		}
		if compiled.text == "false" {
			continue
		}
		byFilter[compiled.text] = compiled.or(byFilter[compiled.text])
	}
	g := &grants{}
	for _, one := range byFilter {
		if one.filter == nil && len(one.fields) == 0 {
			return nil, nil
		}
		g.add(one)
	}
	slices.SortFunc(g.all, func(a, b grant) int {
		return cmp.Or(cmp.Compare(min(1, len(a.fields)), min(1, len(b.fields))), cmp.Compare(a.text, b.text))
	})
	return g, limitGrants(g.params())
}

// limitGrants refuses grants that are too long together.
func limitGrants(all []Grant) error {
	size := 0
	for _, one := range all {
		size += len(one.Filter)
		for _, field := range one.Fields {
			size += len(field)
		}
	}
	if size <= MaxGrantsText {
		return nil
	}
	return refuse("grants", "", fmt.Errorf("the grants are %d bytes long together, and at most %d are allowed", size, MaxGrantsText))
}

// compileGrant compiles one grant.
func compileGrant(one Grant, valueSize int) (g grant, err error) {
	filter := one.compiled
	if filter == nil {
		if filter, err = predicate.Compile(one.Filter, sizeOf(valueSize)); err != nil {
			return grant{}, refuse("grants", one.Filter, err)
		}
	}
	g.text = filter.String()
	if g.text != "true" {
		g.filter = filter
	}
	g.fields, err = parseGrantFields(one.Fields)
	return g, err
}

// parseGrantFields reads the fields of one grant.
func parseGrantFields(texts []string) (fields []path.Path, err error) {
	for _, text := range texts {
		some, err := path.ParseList(text)
		if err != nil {
			return nil, refuse("grants", text, err)
		}
		fields = append(fields, some...)
	}
	if fields = path.Minimal(fields); len(fields) > MaxFields {
		return nil, refuse("grants", "", fmt.Errorf("a grant has %d fields, and at most %d are allowed", len(fields), MaxFields))
	}
	for _, at := range fields {
		if err := limitNames("grants", at); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// or returns the union of two grants with the same filter. The other one may be the zero grant,
// which allows nothing.
func (g grant) or(other grant) grant {
	switch {
	case other.text == "" || len(g.fields) == 0:
		return g
	case len(other.fields) == 0:
		return other
	}
	g.fields = path.Minimal(slices.Concat(g.fields, other.fields))
	return g
}

// add adds a grant.
func (g *grants) add(one grant) {
	for _, at := range one.fields {
		one.keeps.Add(at)
	}
	if one.filter != nil {
		g.reads = append(g.reads, one.filter.Usage().Values...)
		g.labeled = g.labeled || one.filter.Usage().Labels
	}
	g.narrow = g.narrow || len(one.fields) > 0
	g.all = append(g.all, one)
}

// params returns the canonical form; nil for nil.
func (g *grants) params() []Grant {
	if g == nil {
		return nil
	}
	out := make([]Grant, len(g.all))
	for i, one := range g.all {
		out[i].Filter = one.text
		for _, at := range one.fields {
			out[i].Fields = append(out[i].Fields, at.String())
		}
	}
	return out
}

// granted says which grants hold for a resource: one bit for each, in their order.
type granted struct {
	bits  uint64
	whole bool // one of them has no fields
}

func (g granted) sight() Sight {
	switch {
	case g.whole:
		return Whole
	case g.bits != 0:
		return Part
	}
	return Hidden
}

// of returns which grants hold for a resource. It stops at the first one that allows all of the
// resource. An error is the Failure of a grant, which does not hold.
func (g *grants) of(e *extraction, labelsAt path.Path) (held granted, failed error) {
	for i := range g.all {
		one := &g.all[i]
		holds, err := one.holds(e, labelsAt)
		if err != nil {
			failed = err
		}
		if !holds {
			continue
		}
		held.bits |= 1 << i
		if len(one.fields) == 0 {
			held.whole = true
			return held, failed
		}
	}
	return held, failed
}

// holds reports whether the filter of a grant is true of a resource.
func (g *grant) holds(e *extraction, labelsAt path.Path) (bool, error) {
	if g.filter == nil {
		return true, nil
	}
	usage := g.filter.Usage()
	if usage.Labels || len(usage.Values) > 0 {
		e.read()
	}
	repeats := func(at path.Path) bool { return e.document.Repeats(at) }
	if slices.ContainsFunc(usage.Values, repeats) || usage.Labels && repeats(labelsAt) {
		return false, Repeated
	}
	if usage.Labels {
		e.readLabels(labelsAt)
	}
	holds, err := g.filter.Holds(&e.input)
	switch {
	case err == nil:
		return holds, nil
	case !e.isJSON && len(usage.Values) > 0:
		return false, NotJSON
	}
	return false, failure(err)
}

// keeps returns the union of the fields of the grants that hold.
func (g *grants) keeps(held granted) *document.Paths {
	if held.bits&(held.bits-1) == 0 {
		for i := range g.all {
			if held.bits == 1<<i {
				return &g.all[i].keeps
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.joined[held.bits]; known != nil {
		return known
	}
	union := g.union(held)
	if g.joined == nil {
		g.joined = map[uint64]*document.Paths{}
	}
	if len(g.joined) < mostJoined {
		g.joined[held.bits] = union
	}
	return union
}

func (g *grants) union(held granted) *document.Paths {
	var all []path.Path
	for i := range g.all {
		if held.bits&(1<<i) != 0 {
			all = append(all, g.all[i].fields...)
		}
	}
	union := &document.Paths{}
	for _, at := range path.Minimal(all) {
		union.Add(at)
	}
	return union
}

// project returns what may be seen of a resource under the grants that hold for it.
func (g *grants) project(r stream.Resource, held granted) (stream.Resource, error) {
	switch held.sight() {
	case Whole:
		return r, nil
	case Hidden:
		return stream.Resource{}, errHidden
	}
	return keep(r, g.keeps(held))
}

// keep returns a resource with only some paths of its value.
func keep(r stream.Resource, paths *document.Paths) (stream.Resource, error) {
	if r.Encoding != "" {
		r.Value, r.Encoding = []byte("null"), ""
		return r, nil
	}
	value, err := document.Project(r.Value, paths)
	if err != nil {
		return stream.Resource{}, fmt.Errorf("%q: %w", r.Key, err)
	}
	r.Value = value
	return r, nil
}

// costly reports whether evaluating some filter can take far longer than reading the value.
func (g *grants) costly() bool {
	return g != nil && slices.ContainsFunc(g.all, func(one grant) bool {
		return one.filter != nil && (one.filter.Steps() || readsAll(one.filter.Usage().Values))
	})
}

// readsAll reports whether paths lead to all of a value.
func readsAll(reads []path.Path) bool {
	return slices.ContainsFunc(reads, func(at path.Path) bool { return len(at) == 0 })
}

// Restricts reports whether the definition has grants, so that a client may not know what it
// leaves out.
func (d *Definition) Restricts() bool { return d.grants != nil }

// Hides reports whether the grants can hide resources. Nobody may learn that a hidden key
// exists.
func (d *Definition) Hides() bool { return d.grants.hide() }

// Sight returns how much of a resource the grants allow to be seen, whatever else the
// definition selects. An error is the Failure of a grant, which then allows nothing.
func (d *Definition) Sight(r stream.Resource) (Sight, error) {
	if d.grants == nil {
		return Whole, nil
	}
	e := extraction{paths: &d.trees().reads}
	e.set(&r)
	held, err := d.grants.of(&e, d.labelsAt)
	return held.sight(), err
}

// Keeps reports whether the view keeps the whole value of a resource that it has. The result
// does not depend on the content of the parts that the definition leaves out.
func (d *Definition) Keeps(r stream.Resource) bool {
	if len(d.fields) > 0 || !d.Projects() {
		return len(d.fields) == 0
	}
	sight, _ := d.Sight(r)
	return sight == Whole
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
	if held.sight() == Hidden {
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
		if g.filter == nil {
			return nil, false
		}
		sets, prefix, values := filterPlaces(g.filter, d.labelsAt)
		if prefix != "" {
			sets = append(sets, []place{{prefix: &prefix}})
		}
		if sets = append(sets, values...); len(sets) == 0 {
			return nil, false
		}
		of = append(of, sets)
	}
	return of, true
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
}

// String returns the word for a sight.
func (s Sight) String() string {
	return strings.Fields("hidden part whole")[s]
}

// hide reports whether the grants can leave out resources.
func (g *grants) hide() bool {
	return g != nil && !slices.ContainsFunc(g.all, func(one grant) bool { return one.filter == nil })
}
