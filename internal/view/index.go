package view

import (
	"maps"
	"slices"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/internal/view/internal/predicate"
	"github.com/watchtide/watchtide/stream"
)

// Index finds, among many definitions, those that a change of one resource can concern.
// Each definition is kept in one place, so that a change meets only few of them: under a
// value that its filter or its selector wants somewhere, under a key or a prefix of keys,
// or, if it has nothing of the kind, among those that every change meets.
//
// Its zero value is empty. Owned by one goroutine; the definitions may be shared.
type Index[ID comparable] struct {
	entries map[ID]*entry[ID]

	keys     map[string][]*entry[ID]
	prefixes map[string][]*entry[ID]
	lengths  map[int]int // of how many prefixes each length is
	ordered  []int       // lengths, rising
	values   map[*document.Node]map[document.Scalar][]*entry[ID]
	rest     []*entry[ID]
	texts    texts // of values

	paths    document.Paths // of all definitions
	old, new extraction     // of the change at hand
	change   uint64         // counts changes
}

// entry is a definition in the index.
type entry[ID comparable] struct {
	id     ID
	of     *Definition
	places []place
	met    uint64 // the change for which it was last found
}

// place is where an entry is found: under a key, under a prefix, under a value at a path,
// or, if all are nil, at any change.
type place struct {
	key, prefix *string
	at          document.Path
	scalar      *document.Scalar
}

// Change is one resource before and after; nil where it does not exist. Both have the
// same key.
type Change struct{ Old, New *stream.Resource }

// Candidate is a definition that a change can concern. It is valid until the call that
// it was passed to returns.
type Candidate[ID comparable] struct {
	ID    ID
	index *Index[ID]
	of    *Definition
}

// Before reports whether the view had the resource before the change; see Matches.
func (c Candidate[ID]) Before() (bool, error) { return c.index.matches(c.of, &c.index.old) }

// After reports whether the view has the resource after the change; see Matches.
func (c Candidate[ID]) After() (bool, error) { return c.index.matches(c.of, &c.index.new) }

// Quick reports whether Before and After take only the time of a few comparisons: the filter,
// if any, needs no program.
func (c Candidate[ID]) Quick() bool { return !c.of.filtered || c.of.filter.Quick() }

func (x *Index[ID]) matches(d *Definition, e *extraction) (bool, error) {
	if e.resource == nil {
		return false, nil
	}
	return d.matches(e)
}

// Spent returns what the last call of Candidates has cost, with the evaluations that were asked
// for, in units of about 100 ns.
func (x *Index[ID]) Spent() int { return x.old.spent + x.new.spent }

// Len returns the number of definitions.
func (x *Index[ID]) Len() int { return len(x.entries) }

// Add adds a definition. One that has the same id is replaced.
func (x *Index[ID]) Add(id ID, d *Definition) { x.add(id, d, x.choose) }

// AddToAll adds a definition that is a candidate at each change, so that each failure of its
// evaluation is known.
func (x *Index[ID]) AddToAll(id ID, d *Definition) {
	x.add(id, d, func(*Definition) []place { return []place{{}} })
}

func (x *Index[ID]) add(id ID, d *Definition, choose func(*Definition) []place) {
	x.Remove(id)
	if x.entries == nil {
		x.entries = map[ID]*entry[ID]{}
		x.keys, x.prefixes, x.lengths = map[string][]*entry[ID]{}, map[string][]*entry[ID]{}, map[int]int{}
		x.values = map[*document.Node]map[document.Scalar][]*entry[ID]{}
	}
	e := &entry[ID]{id: id, of: d, places: choose(d)}
	x.entries[id] = e
	for _, at := range d.needs() {
		x.paths.Add(at)
	}
	for _, p := range e.places {
		x.put(p, e)
	}
}

// Remove removes a definition; one that is not there changes nothing.
func (x *Index[ID]) Remove(id ID) {
	e := x.entries[id]
	if e == nil {
		return
	}
	delete(x.entries, id)
	for _, p := range e.places {
		x.take(p, e)
	}
	for _, at := range e.of.needs() {
		x.paths.Remove(at)
	}
}

// Candidates calls yield for each definition that can match the resource before or after
// a change, once, in no order. Definitions that it leaves out match neither: they may be
// among those whose evaluation would fail. Neither the index nor the change may be changed
// meanwhile.
func (x *Index[ID]) Candidates(c Change, yield func(Candidate[ID])) {
	x.change++
	x.old.spent, x.new.spent = 0, 0
	x.old.begin(&x.paths, c.Old)
	x.new.begin(&x.paths, c.New)
	switch {
	case c.New != nil:
		x.byKey(c.New.Key, yield)
	case c.Old != nil:
		x.byKey(c.Old.Key, yield)
	default:
		return
	}
	x.byValue(&x.old, yield)
	x.byValue(&x.new, yield)
	x.meet(x.rest, yield)
}

func (x *Index[ID]) byKey(key string, yield func(Candidate[ID])) {
	x.meet(x.keys[key], yield)
	for _, n := range x.ordered {
		if n > len(key) {
			return
		}
		x.meet(x.prefixes[key[:n]], yield)
	}
}

func (x *Index[ID]) byValue(e *extraction, yield func(Candidate[ID])) {
	if len(x.values) == 0 || e.resource == nil || x.wanted().absent(e.resource.Value) {
		return
	}
	e.read()
	for _, v := range e.document.Visits {
		x.meet(x.values[v.At][v.Scalar], yield)
	}
}

// wanted returns the texts of which a value has one if an entry is found by it.
func (x *Index[ID]) wanted() *texts {
	if !x.texts.known {
		x.texts = texts{known: true}
		for _, table := range x.values {
			for scalar := range table {
				if x.texts.add(scalar); x.texts.more {
					return &x.texts
				}
			}
		}
	}
	return &x.texts
}

// meet yields those entries that were not met at this change.
func (x *Index[ID]) meet(entries []*entry[ID], yield func(Candidate[ID])) {
	for _, e := range entries {
		if e.met != x.change {
			e.met = x.change
			x.new.spent++
			yield(Candidate[ID]{ID: e.id, index: x, of: e.of})
		}
	}
}

// at returns the entries at a place.
func (x *Index[ID]) at(p place) []*entry[ID] {
	switch {
	case p.key != nil:
		return x.keys[*p.key]
	case p.prefix != nil:
		return x.prefixes[*p.prefix]
	case p.scalar != nil:
		return x.values[x.paths.Find(p.at)][*p.scalar]
	}
	return x.rest
}

// put adds an entry at a place.
func (x *Index[ID]) put(p place, e *entry[ID]) {
	switch {
	case p.key != nil:
		x.keys[*p.key] = append(x.keys[*p.key], e)
	case p.prefix != nil:
		if len(x.prefixes[*p.prefix]) == 0 {
			x.measure(len(*p.prefix), 1)
		}
		x.prefixes[*p.prefix] = append(x.prefixes[*p.prefix], e)
	case p.scalar != nil:
		x.texts = texts{}
		table := x.table(x.paths.Watch(p.at))
		table[*p.scalar] = append(table[*p.scalar], e)
	default:
		x.rest = append(x.rest, e)
	}
}

// table returns the values at a node.
func (x *Index[ID]) table(n *document.Node) map[document.Scalar][]*entry[ID] {
	if x.values[n] == nil {
		x.values[n] = map[document.Scalar][]*entry[ID]{}
	}
	return x.values[n]
}

// take removes an entry from a place.
func (x *Index[ID]) take(p place, e *entry[ID]) {
	switch {
	case p.key != nil:
		without(x.keys, *p.key, e)
	case p.prefix != nil:
		if without(x.prefixes, *p.prefix, e); len(x.prefixes[*p.prefix]) == 0 {
			x.measure(len(*p.prefix), -1)
		}
	case p.scalar != nil:
		x.texts = texts{}
		n := x.paths.Find(p.at)
		if without(x.values[n], *p.scalar, e); len(x.values[n]) == 0 {
			delete(x.values, n)
		}
		x.paths.Unwatch(p.at)
	default:
		x.rest = drop(x.rest, e)
	}
}

// measure counts the prefixes of a length.
func (x *Index[ID]) measure(length, count int) {
	x.lengths[length] += count
	if x.lengths[length] == 0 {
		delete(x.lengths, length)
	}
	x.ordered = slices.Sorted(maps.Keys(x.lengths))
}

// without removes an entry from those of one key of a map.
func without[K comparable, E comparable](from map[K][]E, key K, e E) {
	from[key] = drop(from[key], e)
	if len(from[key]) == 0 {
		delete(from, key)
	}
}

// drop removes an element, and lets the last one take its place.
func drop[E comparable](from []E, e E) []E {
	i, last := slices.Index(from, e), len(from)-1
	var none E
	from[i], from[last] = from[last], none
	return from[:last]
}

// choose returns the places of a definition: of all sets of places where it could be, the
// first of those with the fewest other definitions.
func (x *Index[ID]) choose(d *Definition) []place {
	sets := d.places()
	if of, ok := d.grantPlaces(); ok {
		union := []place{}
		for _, sets := range of {
			union = append(union, x.leastCrowded(sets)...)
		}
		sets = append(sets, union)
	}
	if len(sets) == 0 {
		return []place{{}}
	}
	return x.leastCrowded(sets)
}

func (x *Index[ID]) leastCrowded(sets [][]place) []place {
	return slices.MinFunc(sets, func(a, b []place) int { return x.crowd(a) - x.crowd(b) })
}

// crowd returns how many entries are at some places.
func (x *Index[ID]) crowd(places []place) (n int) {
	for _, p := range places {
		n += len(x.at(p))
	}
	return n
}

// places returns the sets of places of which each would do for a definition, those first
// for which less is read.
func (d *Definition) places() (sets [][]place) {
	prefix := d.texts.prefix
	var values [][]place
	if d.filtered {
		var longer string
		if sets, longer, values = filterPlaces(&d.filter, d.labelsAt); len(longer) > len(prefix) {
			prefix = longer
		}
	}
	if len(d.texts.keys) > 0 {
		sets = append(sets, keyPlaces(d.keys.named))
	}
	if d.grants != nil && d.grants.narrow { // anything but an object or an array becomes null
		values = slices.DeleteFunc(values, func(set []place) bool { return len(set) > 0 && len(set[0].at) == 0 })
	}
	for _, r := range d.selector {
		if r.in != nil {
			values = append(values, valuePlaces(slices.Concat(d.labelsAt, document.Path{r.Key()}), r.in))
		}
	}
	if prefix != "" {
		sets = append(sets, []place{{prefix: &prefix}})
	}
	return append(sets, values...)
}

// filterPlaces returns the sets of places any of which is enough to find the resources of a
// filter, by keys and by values, without those of a prefix.
func filterPlaces(filter *predicate.Predicate, labelsAt document.Path) (keys [][]place, prefix string, values [][]place) {
	terms, prefix := filter.Terms()
	for _, t := range terms {
		switch t.Variable {
		case "key":
			keys = append(keys, keyPlaces(t.Constants))
		case "labels":
			values = append(values, valuePlaces(slices.Concat(labelsAt, t.At), t.Constants))
		case "value":
			values = append(values, valuePlaces(t.At, t.Constants))
		}
	}
	return keys, prefix, values
}

// keyPlaces returns where a definition is that wants one of some keys. What is no string
// is no key.
func keyPlaces[T any](keys []T) []place {
	places := []place{}
	for _, k := range keys {
		if key, ok := any(k).(string); ok {
			places = append(places, place{key: &key})
		}
	}
	return places
}

// valuePlaces returns where a definition is that wants one of some constants at a path.
func valuePlaces[T any](at document.Path, constants []T) []place {
	seen := map[document.Scalar]bool{}
	for _, c := range constants {
		scalar, _ := document.ScalarOf(any(c))
		seen[scalar] = true
	}
	places := []place{}
	for scalar := range maps.Keys(seen) {
		places = append(places, place{at: at, scalar: &scalar})
	}
	return places
}
