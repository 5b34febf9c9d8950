package view

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/internal/view/internal/predicate"
	"github.com/watchtide/watchtide/stream"
)

// Params are what a definition is made of. All are optional.
type Params struct {
	// Prefix is what the keys begin with: any bytes.
	Prefix string
	// Keys are the keys of the resources. Each element is a key, or several with commas between them; see
	// ParseKeys. None: all.
	Keys []string
	// Labels is a label selector in the syntax of Kubernetes.
	Labels string
	// Filter is an expression in CEL.
	Filter string
	// Fields are the paths to keep. Each element is a path, or several with commas
	// between them. A path is names with dots between them; a name that holds a dot, a
	// comma, a quotation mark, a bracket, a backslash or white space is written as a JSON
	// string: metadata.labels."app.kubernetes.io/name". A path applies to all elements of
	// the arrays on its way.
	Fields []string
	// LabelsAt is the path of the object that holds a resource's labels; empty: labels.
	LabelsAt string
	// Grants say what may be seen of the watch: the resources for which the filter of at least
	// one grant is true, and of their values what any of the grants shows whose filter is true.
	// Prefix, Keys, Labels, Filter and Fields see only that: what the grants hide is treated as
	// absent, even for labels. With nil everything may be seen, with an empty list nothing.
	Grants []Grant
	// Order makes the view a window: of its resources, sorted by these members, it has Limit after the
	// first Offset. A column is a path, with a minus before it if its order is descending; several
	// have commas between them. Limit and Offset are numbers in decimal. After, in place of Offset, is
	// a Cursor of the same order: the window begins behind the place that it names.
	Order, Limit, Offset, After string
	// ValueSize is the size of the largest values, by which the cost of a filter is
	// estimated; 0: DefaultValueSize. Larger values are evaluated too. It is no part of
	// the definition.
	ValueSize int
}

// Definition says which resources a view has, and what of them.
//
// Static after Parse, except for what is made on demand; all methods may be called from any goroutine.
type Definition struct {
	// The fields that each evaluation reads are next to each other.
	filtered bool // there is a filter
	labeled  bool // labels are read
	filter   predicate.Predicate
	reads    []document.Path // the paths of the filter
	selector selector
	texts    parameters

	id       string
	labelsAt document.Path
	fields   []document.Path
	grants   *grants // nil: all may be seen
	keys     keys

	order   []document.Column // none: it is no window
	columns *document.Finder  // of their values
	window  Window
	orderID string

	planted atomic.Pointer[trees] // made when first needed
}

// parameters are the parameters in canonical form, except the filter.
type parameters struct {
	prefix, labels, labelsAt, order, after string
	fields, keys                           []string
}

// trees are the paths of a definition. An Index has one tree for all of its definitions, so
// most definitions never need their own.
//
// Static after construction.
type trees struct {
	reads document.Paths // what Matches reads of a value
	keeps document.Paths // what Project keeps
}

func (d *Definition) trees() *trees {
	if t := d.planted.Load(); t != nil {
		return t
	}
	t := &trees{}
	for _, at := range d.needs() {
		t.reads.Add(at)
	}
	for _, at := range d.fields {
		t.keeps.Add(at)
	}
	d.planted.Store(t) // concurrent callers make the same trees
	return t
}

// Allows reports whether the prefix and the filter's conditions on the key allow a view to have
// a resource with a key.
func (d *Definition) Allows(key string) bool { return d.keys.allow(key) }

// Indexed reports whether an Index finds the definition by what a resource has: others are
// met by each change that their prefix allows.
func (d *Definition) Indexed() bool {
	_, granted := d.grantPlaces()
	return granted || len(d.places()) > 0
}

// Costly reports whether matching a resource can take far longer than reading its value: the
// filter is not cheap for the largest values, or reads all of the value, or a grant takes
// steps. (Other grants are thought to be what their author can afford.)
func (d *Definition) Costly() bool {
	return d.filtered && (!d.filter.Cheap() || readsAll(d.reads)) || d.grants.costly()
}

// Epoch returns the name in the view of a revision order of the watch: 105 bits of a hash
// of it and of the definition, the same on every replica. So it cannot be forged, and a
// position of one definition is never resumed under another.
func (d *Definition) Epoch(watch string) string {
	sum := sha256.Sum256([]byte(d.id + " " + watch)) // an ID has a fixed length
	name := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:21]
	if strings.HasPrefix(watch, stream.UnnumberedEpoch) {
		return stream.UnnumberedEpoch + name
	}
	return name
}

// Parse checks the parameters of a definition. An error is an *Error.
func Parse(p Params) (*Definition, error) { return define(p, nil) }

// define is like Parse. It takes grants that are compiled already, or compiles those of p.
func define(p Params, g *grants) (*Definition, error) {
	d := &Definition{grants: g}
	for _, step := range []func(Params) error{d.parsePrefix, d.parseKeys, d.parseLabelsAt, d.parseLabels, d.parseFilter, d.parseFields, d.parseOrder, d.parseGrants} {
		if err := step(p); err != nil {
			return nil, err
		}
	}
	if d.filtered {
		d.reads = d.filter.Usage().Values
	}
	d.labeled = len(d.selector) > 0 || d.filtered && d.filter.Usage().Labels
	if !d.readsLabels() {
		d.texts.labelsAt = ""
	}
	d.keys = keys{prefix: d.texts.prefix}
	if len(d.texts.keys) > 0 {
		d.keys.named = slices.DeleteFunc(slices.Clone(d.texts.keys), func(key string) bool { return !strings.HasPrefix(key, d.texts.prefix) })
	}
	if d.filtered {
		d.keys.follow(&d.filter)
	}
	d.id = identify(d.encode(d.window))
	if len(d.order) > 0 {
		d.orderID = identify(d.encode(Window{}))
	}
	return d, nil
}

func (d *Definition) parsePrefix(p Params) error {
	if err := limit("prefix", p.Prefix); err != nil {
		return err
	}
	d.texts.prefix = p.Prefix
	return nil
}

// defaultLabelsAt is where labels are unless a definition says otherwise. Nobody writes to it.
var defaultLabelsAt = document.Path{"labels"}

func (d *Definition) parseLabelsAt(p Params) error {
	d.labelsAt = defaultLabelsAt
	if p.LabelsAt != "" {
		if err := limit("labels_at", p.LabelsAt); err != nil {
			return err
		}
		at, err := document.Parse(p.LabelsAt)
		if err != nil {
			return refuse("labels_at", p.LabelsAt, err)
		}
		d.labelsAt = at
	}
	if err := limitNames("labels_at", d.labelsAt); err != nil {
		return err
	}
	d.texts.labelsAt = d.labelsAt.String()
	return limitCanonical("labels_at", d.texts.labelsAt)
}

func (d *Definition) parseLabels(p Params) (err error) {
	if err := limitText("labels", p.Labels); err != nil {
		return err
	}
	if d.selector, err = parseSelector(p.Labels); err != nil {
		return refuse("labels", p.Labels, err)
	}
	d.texts.labels = d.selector.String()
	return limitCanonical("labels", d.texts.labels)
}

func (d *Definition) parseFilter(p Params) error {
	if p.Filter == "" {
		return nil
	}
	if err := limitText("filter", p.Filter); err != nil {
		return err
	}
	filter, err := predicate.Compile(p.Filter, sizeOf(p.ValueSize))
	if err != nil {
		return refuse("filter", p.Filter, err)
	}
	d.filter, d.filtered = *filter, true
	return limitCanonical("filter", d.filter.String())
}

// sizeOf returns the size of the largest values, given Params.ValueSize.
func sizeOf(valueSize int) int {
	if valueSize <= 0 {
		return DefaultValueSize
	}
	return valueSize
}

func (d *Definition) parseFields(p Params) error {
	for _, text := range p.Fields {
		if err := limitText("fields", text); err != nil {
			return err
		}
		some, err := document.ParseList(text)
		if err != nil {
			return refuse("fields", text, err)
		}
		d.fields = append(d.fields, some...)
	}
	if d.fields = document.Minimal(d.fields); len(d.fields) > MaxFields {
		return refuse("fields", "", fmt.Errorf("there are %d fields, and at most %d are allowed", len(d.fields), MaxFields))
	}
	for _, at := range d.fields {
		if err := limitNames("fields", at); err != nil {
			return err
		}
		d.texts.fields = append(d.texts.fields, at.String())
	}
	return limitCanonical("fields", strings.Join(d.texts.fields, ","))
}

// limit refuses text that is too long.
func limit(parameter, text string) error {
	if len(text) <= MaxText {
		return nil
	}
	return refuse(parameter, text, &document.Mistake{
		Offset:  MaxText,
		Problem: fmt.Sprintf("the text is %d bytes long, and at most %d are allowed", len(text), MaxText),
	})
}

// limitNames refuses a path that is too long.
func limitNames(parameter string, at document.Path) error {
	if len(at) <= MaxNames {
		return nil
	}
	return refuse(parameter, "", fmt.Errorf("%s has %d names, and at most %d are allowed", at, len(at), MaxNames))
}

// limitCanonical refuses a canonical form that is too long to be given.
func limitCanonical(parameter, text string) error {
	if len(text) <= MaxText {
		return nil
	}
	return refuse(parameter, text, fmt.Errorf("the text is %d bytes long in full, with spaces around operators and special characters escaped, and at most %d are allowed", len(text), MaxText))
}

// limitText refuses text that is too long or no text.
func limitText(parameter, text string) error {
	if err := limit(parameter, text); err != nil {
		return err
	}
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if r == utf8.RuneError && size == 1 {
			return refuse(parameter, text, &document.Mistake{Offset: at, Problem: "the text is not UTF-8"})
		}
		at += size
	}
	return nil
}

// needs returns what Matches reads of a value.
func (d *Definition) needs() []document.Path {
	needs := slices.Clone(d.reads)
	if d.grants != nil {
		needs = append(needs, d.grants.reads...)
	}
	if d.readsLabels() {
		needs = append(needs, d.labelsAt)
	}
	return needs
}

// readsLabels reports whether anything in the definition reads labels.
func (d *Definition) readsLabels() bool { return d.labeled || d.grants != nil && d.grants.labeled }

// encode returns bytes that no other definition has: a version, and each part with its
// length before it.
func (d *Definition) encode(w Window) []byte {
	var out []byte
	part := func(text string) {
		out = binary.AppendUvarint(out, uint64(len(text)))
		out = append(out, text...)
	}
	count := func(n int) { out = binary.AppendUvarint(out, uint64(n)) }
	if n := len(d.texts.keys); n > 0 {
		out = append(out, "keys 1\n"...)
		count(n)
		for _, key := range d.texts.keys {
			part(key)
		}
	}
	if len(d.order) == 0 {
		out = append(out, "view 1\n"...)
	} else {
		out = append(out, "window 1\n"...)
		part(d.texts.order)
		count(w.Limit)
		count(w.Offset)
		part(w.After)
	}
	part(d.texts.prefix)
	part(d.texts.labelsAt)
	part(d.texts.labels)
	part(d.filter.String())
	count(len(d.texts.fields))
	for _, text := range d.texts.fields {
		part(text)
	}
	d.appendGrants(part, count)
	return out
}

// identify returns 160 bits of a hash as 32 letters and digits: nobody finds two texts
// with the same one.
func identify(encoded []byte) string {
	sum := sha256.Sum256(encoded)
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:20]))
}

// ID returns the same 32 lower-case letters and digits for equal definitions only.
func (d *Definition) ID() string { return d.id }

// Params returns the canonical form, from which Parse makes the same definition.
func (d *Definition) Params() Params {
	return Params{
		Prefix: d.texts.prefix, Keys: asList(d.texts.keys), Labels: d.texts.labels, Filter: d.filter.String(), Fields: slices.Clone(d.texts.fields),
		LabelsAt: d.texts.labelsAt, Grants: d.grants.params(),
		Order: d.texts.order, Limit: asParameter(d.window.Limit), Offset: asParameter(d.window.Offset), After: d.texts.after,
	}
}

// IsWhole reports whether the definition narrows nothing: the view is the watch.
func (d *Definition) IsWhole() bool { return !d.filters() && !d.Projects() && len(d.order) == 0 }

// filters reports whether the definition can leave resources out.
func (d *Definition) filters() bool {
	return d.texts.prefix != "" || len(d.texts.keys) > 0 || len(d.selector) > 0 || d.filtered || d.grants.hide()
}

// Projects reports whether the definition keeps only some fields of values, at least of
// some resources.
func (d *Definition) Projects() bool { return len(d.fields) > 0 || d.grants != nil && d.grants.narrow }

// Matches reports whether the view has a resource. An error is a Failure: of the filter or the
// selector, so that the view does not have it, or of a grant, which then does not hold.
func (d *Definition) Matches(r stream.Resource) (bool, error) {
	e := extraction{paths: &d.trees().reads}
	e.set(&r)
	return d.matches(&e)
}

// Matcher says of one resource after the other whether a view has it. It makes less garbage
// than Matches.
//
// Owned by one goroutine.
type Matcher struct {
	of         *Definition
	resource   stream.Resource
	extraction extraction
}

// Matcher returns a matcher.
func (d *Definition) Matcher() *Matcher {
	return &Matcher{of: d, extraction: extraction{paths: &d.trees().reads}}
}

// Spent returns what the last call of Matches has cost, in units of about 100 ns.
func (m *Matcher) Spent() int { return m.extraction.spent }

// Asked returns how much of that the filter has cost. It depends only on what the grants show.
func (m *Matcher) Asked() int { return m.extraction.asked }

// Matches is Definition.Matches.
func (m *Matcher) Matches(r stream.Resource) (bool, error) {
	m.resource, m.extraction.spent, m.extraction.asked = r, 0, 0
	m.extraction.set(&m.resource)
	return m.of.matches(&m.extraction)
}

// matches is Matches with what was read of the resource for this definition and others.
func (d *Definition) matches(e *extraction) (bool, error) {
	if !strings.HasPrefix(e.resource.Key, d.texts.prefix) || !d.names(e.resource.Key) {
		return false, nil
	}
	if d.grants != nil {
		return d.matchesGranted(e)
	}
	return d.selects(e)
}

// selects reports whether the selector and the filter hold.
func (d *Definition) selects(e *extraction) (bool, error) {
	if d.labeled || len(d.reads) > 0 {
		e.read()
	}
	if d.repeats(e) {
		return false, Repeated
	}
	if d.labeled {
		e.readLabels(d.labelsAt)
	}
	if !d.selector.matches(labels.Set(e.labels)) {
		return false, nil
	}
	if !d.filtered {
		return true, nil
	}
	ok, err := e.holds(&d.filter)
	e.asked += e.input.Spent()
	if err == nil {
		return ok, nil
	}
	if !e.isJSON && len(d.reads) > 0 {
		return false, NotJSON
	}
	return false, failure(err)
}

// repeats reports whether a member occurs twice that the definition needs.
func (d *Definition) repeats(e *extraction) bool {
	if !e.document.HasRepeats() {
		return false
	}
	for _, at := range d.reads {
		if e.document.Repeats(at) {
			return true
		}
	}
	return d.labeled && e.document.Repeats(d.labelsAt)
}

// Project returns a resource with only the fields that the definition keeps, or as it is if it
// keeps all: the members in the value's own order and with its own bytes, arrays with each of
// their elements narrowed. Objects and arrays on the way to a field stay, if only as {} or [];
// anything else on the way goes, also from arrays. Of a value that is neither an object nor an
// array, and of one that is not JSON, nothing is left: null. The error says that the value is
// not valid (see stream.Resource), or that no grant allows the resource to be seen.
func (d *Definition) Project(r stream.Resource) (stream.Resource, error) {
	r, err := d.projectGranted(r)
	if err != nil || len(d.fields) == 0 {
		return r, err
	}
	return keep(r, &d.trees().keeps)
}
