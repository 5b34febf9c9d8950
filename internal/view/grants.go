package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/internal/view/internal/predicate"
)

// Limits of the grants of a definition.
const (
	// MaxGrants is the maximum number of grants.
	MaxGrants = 64
	// MaxGrantsText is the maximum length of all grants together, in bytes.
	MaxGrantsText = 64 << 10
	// MaxNamespaces is the maximum number of namespaces of all grants together.
	MaxNamespaces = 10_000
)

// Grant allows a part of a watch to be seen.
type Grant struct {
	// Filter is an expression in CEL, as in Params. It says which resources may be seen: with
	// "true" all of them.
	Filter string
	// Fields are the paths of the values of these resources that may be seen, as in Params.
	// None: the whole value.
	Fields []string
	// Except are the paths of what may not be seen of that. Each is below one of Fields, if
	// there are any.
	Except []string
	// Namespaces, if not nil, are those that the grant shows, besides what Filter says: the
	// namespace of a resource is what its key has before the first slash. A key without a slash has
	// none, and is not shown.
	Namespaces []string

	compiled *predicate.Predicate // what Filter means; nil: Parse compiles it
}

// Shows reports whether the grant shows something of what is at a path. A text that is no path is
// shown by none.
func (g Grant) Shows(field string) bool {
	at, err := document.Parse(field)
	if err != nil {
		return false
	}
	one, err := compileGrant(Grant{Filter: "true", Fields: g.Fields, Except: g.Except}, 0)
	if err != nil || slices.ContainsFunc(one.except, at.Below) {
		return false
	}
	return len(one.fields) == 0 || slices.ContainsFunc(one.fields, func(shown document.Path) bool { return at.Below(shown) || shown.Below(at) })
}

// Visibility is how much of a resource may be seen.
type Visibility int

// The visibilities.
const (
	Hidden Visibility = iota // nothing, and not that it exists
	Part                     // some fields of its value, or all but some
	Whole                    // all of it
)

// grants are the compiled grants of a definition. A nil *grants allows everything.
//
// Static after newGrants, except for what mu guards. Any goroutine may use it.
type grants struct {
	all     []grant         // canonical: sorted, one for each filter
	reads   []document.Path // by each filter: a path below that of another one is needed too
	labeled bool            // some filter reads labels
	narrow  bool            // some grant does not show whole values

	mu     sync.Mutex
	joined map[uint64]*document.Paths // the fields of several grants, by their bits
}

// grant is one compiled Grant.
type grant struct {
	text   string               // of the filter
	filter *predicate.Predicate // nil: true
	within map[string]struct{}  // namespaces; nil: all
	fields []document.Path      // none: all
	except []document.Path      // of them
	keeps  document.Paths       // both
}

// showsAll reports whether the grant shows something of every resource.
func (g *grant) showsAll() bool { return g.filter == nil && g.within == nil }

// namespaces returns the namespaces in order; nil: all. A grant that is kept has at least one then.
func (g *grant) namespaces() []string { return slices.Sorted(maps.Keys(g.within)) }

// whole reports whether the grant shows whole values.
func (g *grant) whole() bool { return len(g.fields)+len(g.except) == 0 }

// mostJoined is how many unions of fields are remembered.
const mostJoined = 256

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
		if compiled.text == "false" || compiled.within != nil && len(compiled.within) == 0 {
			continue
		}
		key := compiled.key()
		byFilter[key] = compiled.or(byFilter[key])
	}
	g := &grants{}
	for _, key := range slices.Sorted(maps.Keys(byFilter)) {
		one := byFilter[key]
		if one.showsAll() && one.whole() {
			return nil, nil
		}
		g.add(one)
	}
	slices.SortStableFunc(g.all, func(a, b grant) int {
		return cmp.Or(cmp.Compare(min(1, len(a.fields)+len(a.except)), min(1, len(b.fields)+len(b.except))), cmp.Compare(a.text, b.text))
	})
	return g, limitGrants(g.params())
}

// limitGrants refuses grants that are too long together.
func limitGrants(all []Grant) error {
	size, namespaces := 0, 0
	for _, one := range all {
		size += len(one.Filter)
		namespaces += len(one.Namespaces)
		for _, field := range slices.Concat(one.Fields, one.Except) {
			size += len(field)
		}
	}
	switch {
	case namespaces > MaxNamespaces:
		return refuse("grants", "", fmt.Errorf("there are %d namespaces, and at most %d are allowed", namespaces, MaxNamespaces))
	case size <= MaxGrantsText:
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
	if one.Namespaces != nil {
		g.within = map[string]struct{}{}
		for _, name := range one.Namespaces {
			g.within[name] = struct{}{}
		}
	}
	if g.fields, err = parseGrantFields(one.Fields); err != nil {
		return grant{}, err
	}
	if g.except, err = parseGrantFields(one.Except); err != nil {
		return grant{}, err
	}
	return g, g.checkExcept()
}

// checkExcept refuses to leave out what is not shown anyway, and all of a field.
func (g *grant) checkExcept() error {
	for _, at := range g.except {
		if len(g.fields) > 0 && !slices.ContainsFunc(g.fields, func(field document.Path) bool { return len(at) > len(field) && at.Below(field) }) {
			return refuse("grants", "", fmt.Errorf("%s is not below one of the fields, so there is nothing to leave out of them", at))
		}
	}
	return nil
}

// key returns what is equal for the grants that or can join: grants with the same filter and the same
// namespaces, of which none leaves fields out, or those that are equal.
func (g *grant) key() string {
	within := ""
	if g.within != nil {
		within = fmt.Sprintf("\x01%q", g.namespaces())
	}
	if len(g.except) == 0 {
		return g.text + within
	}
	return fmt.Sprintf("%s\x00%q\x00%q%s", g.text, g.fields, g.except, within)
}

// parseGrantFields reads the fields of one grant.
func parseGrantFields(texts []string) (fields []document.Path, err error) {
	for _, text := range texts {
		some, err := document.ParseList(text)
		if err != nil {
			return nil, refuse("grants", text, err)
		}
		fields = append(fields, some...)
	}
	if fields = document.Minimal(fields); len(fields) > MaxFields {
		return nil, refuse("grants", "", fmt.Errorf("a grant has %d fields, and at most %d are allowed", len(fields), MaxFields))
	}
	for _, at := range fields {
		if err := limitNames("grants", at); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// or returns the union of two grants with the same key. The other one may be the zero grant,
// which allows nothing.
func (g grant) or(other grant) grant {
	switch {
	case other.text == "" || g.whole() || len(g.except) > 0:
		return g
	case other.whole():
		return other
	}
	g.fields = document.Minimal(slices.Concat(g.fields, other.fields))
	return g
}

// add adds a grant.
func (g *grants) add(one grant) {
	for _, at := range one.fields {
		one.keeps.Add(at)
	}
	if len(one.fields) == 0 {
		one.keeps.Add(document.Path{})
	}
	for _, at := range one.except {
		one.keeps.Hide(at)
	}
	if one.filter != nil {
		g.reads = append(g.reads, one.filter.Usage().Values...)
		g.labeled = g.labeled || one.filter.Usage().Labels
	}
	g.narrow = g.narrow || !one.whole()
	g.all = append(g.all, one)
}

// params returns the canonical form; nil for nil.
func (g *grants) params() []Grant {
	if g == nil {
		return nil
	}
	out := make([]Grant, len(g.all))
	for i, one := range g.all {
		out[i].Filter, out[i].Namespaces = one.text, one.namespaces()
		for _, at := range one.fields {
			out[i].Fields = append(out[i].Fields, at.String())
		}
		for _, at := range one.except {
			out[i].Except = append(out[i].Except, at.String())
		}
	}
	return out
}

// readsAll reports whether paths lead to all of a value.
func readsAll(reads []document.Path) bool {
	return slices.ContainsFunc(reads, func(at document.Path) bool { return len(at) == 0 })
}

// String returns the word for a visibility.
func (s Visibility) String() string {
	return strings.Fields("hidden part whole")[s]
}

// hide reports whether the grants can leave out resources.
func (g *grants) hide() bool {
	return g != nil && !slices.ContainsFunc(g.all, func(one grant) bool { return one.showsAll() })
}
