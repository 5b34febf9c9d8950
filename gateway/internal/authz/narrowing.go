package authz

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// The parameters that narrow a watch. Followed by a dot and the name of a watch
// ("filter.services"), they narrow one watch of several.
const (
	prefixParameter = "prefix"
	keysParameter   = "keys"
	labelsParameter = "labels"
	filterParameter = "filter"
	fieldsParameter = "fields"
	orderParameter  = "order"
	limitParameter  = "limit"
	offsetParameter = "offset"
	afterParameter  = "after"

	// PollAfterParameter is after in a long poll, where after is a position.
	PollAfterParameter = "window_after"
)

var (
	narrowing = []string{prefixParameter, labelsParameter, filterParameter, fieldsParameter, keysParameter}
	// windowing are those that make a part a window of it.
	windowing    = []string{orderParameter, limitParameter, offsetParameter, afterParameter}
	allNarrowing = slices.Concat(narrowing, windowing)
	// ofStreams are those of each watch of a stream.
	ofStreams = append(slices.Clone(allNarrowing), byParameter, sumParameter)
)

// Narrowing has the parameters with which a client narrows a request for one watch, as the
// client wrote them. The zero value does not narrow.
//
// It must not be modified once handed over.
type Narrowing struct {
	params view.Params
	as     map[string]string // by parameter: as the client wrote it, if not like this
	of     string            // the watch that the client names in parameters; empty: none
	counts *counting         // nil: resources are asked for, and not counts of them
}

// counting has the parameters of counts.
type counting struct {
	by  []string
	sum string
}

// The parameters of a request for counts, beside those that narrow what is counted.
const (
	byParameter  = "by"
	sumParameter = "sum"
)

// Countable returns the parameters that a request for counts may have, beside those in once.
func Countable(once ...string) problem.Parameters {
	p := problem.Parameters{
		Once:     append(once, prefixParameter, labelsParameter, filterParameter, sumParameter),
		Repeated: []string{byParameter, keysParameter}, Hints: map[string]string{},
	}
	for _, name := range append(slices.Clone(windowing), fieldsParameter, PollAfterParameter) {
		p.Hints[name] = notOfCounts + ": " + ofCounts
	}
	return p
}

// What to say of a parameter of resources in a request for counts.
const (
	notOfCounts = "it does not go with counts"
	ofCounts    = "want prefix, keys, labels or filter"
)

// CountedAt adds to the parameters of a request for resources what to say of those of counts, which the path at
// has.
func CountedAt(at string, p problem.Parameters) problem.Parameters {
	hint := "want " + at + "?by=… for counts"
	p.Hints = map[string]string{byParameter: hint, sumParameter: hint}
	return p
}

// CountingOf reads the parameters of a request for counts.
func CountingOf(query url.Values) Narrowing {
	n := NarrowingOf(query)
	n.counts = &counting{by: given(query[byParameter]), sum: query.Get(sumParameter)}
	return n
}

// count makes n a request for counts.
func (n *Narrowing) count() *counting {
	if n.counts == nil {
		n.counts = &counting{}
	}
	return n.counts
}

// checkCounts refuses a request for counts without by, or with a parameter that has no meaning for counts.
func (n Narrowing) checkCounts() *problem.Problem {
	if n.counts == nil {
		return nil
	}
	if sum := n.written(sumParameter); len(n.counts.by) == 0 {
		return problem.BadParameter(sum, "%s is given without %s: want the fields to count by as well", sum, n.written(byParameter))
	}
	if beyond := n.uncountable(); beyond != "" {
		beyond = n.written(beyond)
		return problem.BadParameter(beyond, "%s is of resources, and %s asks for counts of them: want one of the two", beyond, n.written(byParameter))
	}
	return nil
}

// grouping returns how resources are counted; nil: they are not.
func (n Narrowing) grouping() (*view.Grouping, error) {
	if n.counts == nil {
		return nil, nil
	}
	if other := n.uncountable(); other != "" {
		return nil, &view.Error{Parameter: other, Line: 1, Column: 1, Problem: notOfCounts, Advice: ofCounts + ", or no by"}
	}
	return view.ParseGrouping(n.counts.by, n.counts.sum)
}

// Narrowable returns the parameters that a request for one watch may have: those in once, those
// that may be repeated, and those that narrow the watch.
func Narrowable(once ...string) problem.Parameters {
	return problem.Parameters{Once: append(once, narrowing[:3]...), Repeated: narrowing[3:]}
}

// Windowable returns the parameters that a request for one watch may have, which may be about a
// window.
func Windowable(once ...string) problem.Parameters { return Narrowable(append(once, windowing...)...) }

// PollWindowable is Windowable for a long poll.
func PollWindowable(once ...string) problem.Parameters {
	return Narrowable(append(once, orderParameter, limitParameter, offsetParameter, PollAfterParameter)...)
}

// NarrowingOf reads the parameters that narrow the only watch of a request. Empty ones are
// ignored.
func NarrowingOf(query url.Values) Narrowing { return narrowingOf(query, narrowing) }

// WindowOf is NarrowingOf for a request that may be about a window.
func WindowOf(query url.Values) Narrowing { return narrowingOf(query, allNarrowing) }

// PollWindowOf is WindowOf for a long poll.
func PollWindowOf(query url.Values) Narrowing {
	n := narrowingOf(query, slices.Concat(narrowing, []string{orderParameter, limitParameter, offsetParameter}))
	n.set(afterParameter, query[PollAfterParameter])
	n.write(afterParameter, PollAfterParameter)
	return n
}

// HasOrder reports whether a window is asked for.
func (n Narrowing) HasOrder() bool { return n.params.Order != "" }

func narrowingOf(query url.Values, parameters []string) Narrowing {
	var n Narrowing
	for _, parameter := range parameters {
		n.set(parameter, query[parameter])
	}
	return n
}

// NarrowingMessage is a request over gRPC that may narrow a watch.
type NarrowingMessage interface {
	GetPrefix() string
	GetLabels() string
	GetFilter() string
	GetFields() []string
}

// windowMessage is a request over gRPC that may be about a window.
type windowMessage interface {
	GetOrder() string
	GetLimit() uint32
	GetOffset() uint32
	GetAfter() string
}

// countingMessage is a request over gRPC that may be for counts.
type countingMessage interface {
	GetBy() []string
	GetSum() string
}

// given32 returns a number as a parameter; 0: it is not given.
func given32(n uint32) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(n), 10)
}

// NarrowingIn is NarrowingOf for gRPC.
func NarrowingIn(m NarrowingMessage) Narrowing {
	var n Narrowing
	n.set(prefixParameter, []string{m.GetPrefix()})
	n.set(labelsParameter, []string{m.GetLabels()})
	n.set(filterParameter, []string{m.GetFilter()})
	n.set(fieldsParameter, m.GetFields())
	if k, ok := m.(interface{ GetKeys() []string }); ok {
		n.set(keysParameter, k.GetKeys())
	}
	if w, ok := m.(windowMessage); ok {
		n.set(orderParameter, []string{w.GetOrder()})
		n.set(limitParameter, []string{given32(w.GetLimit())})
		n.set(offsetParameter, []string{given32(w.GetOffset())})
		n.set(afterParameter, []string{w.GetAfter()})
	}
	if c, ok := m.(countingMessage); ok && (len(c.GetBy()) > 0 || c.GetSum() != "") {
		n.counts = &counting{by: given(c.GetBy()), sum: c.GetSum()}
	}
	return n
}

// uncountable returns a parameter that narrows, and that does not go with counts; "": there is none.
func (n Narrowing) uncountable() string {
	beyond := n
	beyond.params.Keys, beyond.params.Labels, beyond.params.Filter = nil, "", ""
	return beyond.beyondPrefix()
}

// Narrowings reads the parameters that narrow the watches of a stream, or that ask for counts of them: filter for a
// stream of one watch, filter.NAME for any. The result has one element for each watch.
func Narrowings(query url.Values, watches []string) ([]Narrowing, *problem.Problem) {
	out := make([]Narrowing, len(watches))
	for _, parameter := range slices.Sorted(maps.Keys(query)) { // so that the same mistakes get the same answer
		base, name, dotted := strings.Cut(parameter, ".")
		if dotted && slices.Contains(ofStreams, base) && !slices.Contains(watches, name) {
			return nil, problem.BadParameter(parameter, "watch %q is not part of this stream", name).OnWatch(name)
		}
	}
	for _, parameter := range ofStreams {
		if p := narrowBy(out, query, parameter, watches); p != nil {
			return nil, p
		}
	}
	for i := range out {
		if p := out[i].checkCounts(); p != nil {
			return nil, p.OnWatch(watches[i])
		}
	}
	return out, nil
}

// narrowBy applies one of the parameters to the watches that it narrows.
func narrowBy(out []Narrowing, query url.Values, parameter string, watches []string) *problem.Problem {
	bare := given(query[parameter])
	if len(bare) > 0 && len(watches) > 1 {
		return problem.BadParameter(parameter, "which watch does %s narrow? In a stream of several, want %[1]s.%s=…", parameter, watches[0])
	}
	if len(bare) > 0 {
		out[0].set(parameter, bare)
		out[0].write(parameter, parameter)
	}
	for i, name := range watches {
		as := parameter + "." + name
		values := given(query[as])
		if len(values) == 0 {
			continue
		}
		if len(bare) > 0 {
			return problem.BadParameter(as, "both %s and %s are given: want one of them", parameter, as)
		}
		out[i].set(parameter, values)
		out[i].write(parameter, as)
		out[i].of = name
	}
	return nil
}

// given returns the values that are not empty.
func given(values []string) (out []string) {
	for _, value := range values {
		if value != "" {
			out = append(out, value)
		}
	}
	return out
}

// set sets a parameter, unless all values are empty.
func (n *Narrowing) set(parameter string, values []string) {
	values = given(values)
	switch {
	case len(values) == 0:
	case parameter == prefixParameter:
		n.params.Prefix = values[0]
	case parameter == keysParameter:
		n.params.Keys = values
	case parameter == labelsParameter:
		n.params.Labels = values[0]
	case parameter == filterParameter:
		n.params.Filter = values[0]
	case parameter == fieldsParameter:
		n.params.Fields = values
	case parameter == orderParameter:
		n.params.Order = values[0]
	case parameter == limitParameter:
		n.params.Limit = values[0]
	case parameter == offsetParameter:
		n.params.Offset = values[0]
	case parameter == afterParameter:
		n.params.After = values[0]
	case parameter == byParameter:
		n.count().by = values
	case parameter == sumParameter:
		n.count().sum = values[0]
	}
}

// isEmpty reports whether nothing narrows.
func (n Narrowing) isEmpty() bool { return n.params.Prefix == "" && n.beyondPrefix() == "" }

// onlyKeys reports whether resources with some keys are asked for, whatever else they are.
func (n Narrowing) onlyKeys() bool {
	beyond := n
	beyond.params.Keys = nil
	return len(n.params.Keys) > 0 && n.counts == nil && beyond.isEmpty()
}

// beyondPrefix returns a parameter other than prefix that narrows; "": there is none.
func (n Narrowing) beyondPrefix() string {
	switch p := n.params; {
	case len(p.Keys) > 0:
		return keysParameter
	case p.Labels != "":
		return labelsParameter
	case p.Filter != "":
		return filterParameter
	case len(p.Fields) > 0:
		return fieldsParameter
	case p.Order != "":
		return orderParameter
	case p.Limit != "":
		return limitParameter
	case p.Offset != "":
		return offsetParameter
	case p.After != "":
		return afterParameter
	}
	return ""
}

// Parameter returns a parameter that narrows, as the client wrote it; "": there is none.
func (n Narrowing) Parameter() string {
	switch beyond := n.beyondPrefix(); {
	case beyond != "":
		return n.written(beyond)
	case n.params.Prefix != "":
		return n.written(prefixParameter)
	}
	return ""
}

// written returns a parameter as the client wrote it, or would write it beside those that it wrote.
func (n Narrowing) written(parameter string) string {
	if n.as[parameter] == "" && n.of != "" {
		return parameter + "." + n.of
	}
	return cmp.Or(n.as[parameter], parameter)
}

// write records how the client wrote a parameter.
func (n *Narrowing) write(parameter, as string) {
	if n.as == nil {
		n.as = map[string]string{}
	}
	n.as[parameter] = as
}

// paramsFor returns the parameters of the definition for a watch.
func (n Narrowing) paramsFor(w *watch.Watch) view.Params {
	p := n.params
	p.LabelsAt = w.LabelsAt()
	if l, limits := w.Writer().(stream.ValueLimiter); limits {
		p.ValueSize = int(l.MaxValueBytes())
	}
	return p
}

// refused returns the answer to invalid parameters: a 400 with the parameter and the place in
// it.
func (n Narrowing) refused(w *watch.Watch, err error) *problem.Problem {
	var e *view.Error
	if !errors.As(err, &e) || !slices.Contains(allNarrowing, e.Parameter) && e.Parameter != byParameter && e.Parameter != sumParameter {
		return problem.New(http.StatusInternalServerError, "watch %q cannot be narrowed: %v", w.Name(), err).OnWatch(w.Name())
	}
	as := n.written(e.Parameter)
	text := *e
	text.Parameter = as
	if e.Needs != "" {
		text.Needs = n.written(e.Needs)
	}
	if e.Parameter == fieldsParameter {
		text.Parameter += n.whichField()
	}
	p := problem.BadParameter(as, "%s", text.Error()).OnWatch(w.Name())
	p.Place = &problem.Place{Offset: e.Offset, Line: e.Line, Column: e.Column}
	return p
}

// whichField returns the index of the wrong value of fields, if there are several and only one
// is wrong.
func (n Narrowing) whichField() string {
	fields := n.params.Fields
	if len(fields) < 2 {
		return ""
	}
	for i, value := range fields {
		if _, err := view.Parse(view.Params{Fields: []string{value}}); err != nil {
			return fmt.Sprintf(" (value %d of %d)", i+1, len(fields))
		}
	}
	return ""
}
