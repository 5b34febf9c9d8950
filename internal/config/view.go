package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/watchtide/watchtide/internal/config/internal/parameter"
	"github.com/watchtide/watchtide/stream/view"
)

// labelsAt is where the labels of resources are, by type of source, if not in the object
// "labels".
var labelsAt = map[SourceType]string{Kubernetes: "metadata.labels", Consul: "metadata"}

// declaredWatch is an entry of "watches" as far as others depend on it.
type declaredWatch struct {
	viewOf   string // empty: it has a source
	labelsAt string // for a view, of the watch of which it is a part in the end
	at       value  // the entry
	of       value  // of view_of
	read     func(labelsAt string)
}

// isView reports whether the entry of a watch has the key view_of.
func (d *decoder) isView(v value) bool {
	errors := len(d.errs)
	entries, _ := d.entries(v)
	d.errs = d.errs[:errors] // they are reported when the entries are read
	return slices.ContainsFunc(entries, func(e entry) bool { return e.name == "view_of" })
}

// readView reads the keys of a view. What it selects is read once all watches are known.
func (w *Watch) readView(d *decoder, v value) {
	entries, _ := d.entries(v)
	var keys []key
	notOfViews := []string{"source", "labels_at"}
	for _, k := range keysOf(w) {
		if slices.Contains(notOfViews, k.name) || k.of != nil && !slices.Contains(k.of, string(ofView)) {
			notOfViews = append(notOfViews, k.name)
			continue
		}
		keys = append(keys, k)
	}
	entries = slices.DeleteFunc(entries, func(given entry) bool {
		misplaced := slices.Contains(notOfViews, given.name)
		if misplaced {
			d.errorf(value{node: given.key, path: v.path}, "%s is for watches that have a source, and this one is a view of another", given.name)
		}
		return misplaced
	})
	d.fillWatch(w, v, entries, keys)
	d.watches[w.Name] = declaredWatch{viewOf: w.ViewOf, at: v, of: d.given[&w.ViewOf], read: w.definitionReader(d, v)}
}

// definitionReader returns what reads the definition of a view, or of a watch of a gateway
// source, given where labels are.
func (w *Watch) definitionReader(d *decoder, v value) func(string) {
	places := map[string]value{"prefix": d.given[&w.Prefix], "filter": d.given[&w.Filter], "labels": d.given[&w.Labels], "fields": d.given[&w.Fields]}
	params, name, t := w.viewParams(""), w.Name, d.template
	filter := option{}
	if t != nil {
		filter = t.given[&w.Filter]
	}
	isView := w.ViewOf != ""
	return func(labelsAt string) {
		params.LabelsAt = labelsAt
		definition, err := view.Parse(params)
		if t != nil {
			t.labelsAt = labelsAt
			if !parameter.StandAlone(filter.text, t.sample, params, definition) {
				d.errorf(places["filter"], "a parameter in a filter is a string; write it without quotation marks around it, as in value.team == {%s}", t.params[0].name)
				return
			}
		}
		switch {
		case err != nil:
			d.wrongDefinition(v, places, params.Fields, err)
		case !definition.IsWhole():
			d.definitions[name] = definition
		case isView:
			d.errorf(v.atKey(), "the view selects everything; want prefix, labels, filter or fields")
		}
	}
}

// viewParams returns what a view selects, or a watch of a gateway source.
func (w *Watch) viewParams(labelsAt string) view.Params {
	p := view.Params{Prefix: w.Prefix, Filter: w.Filter, Labels: w.Labels, Fields: w.Fields, LabelsAt: labelsAt}
	if w.ViewOf == "" {
		p.ValueSize = 1 // what a filter costs is for the other gateway to say
	}
	return p
}

// wrongDefinition reports a mistake in a definition, at the value that has it.
func (d *decoder) wrongDefinition(v value, places map[string]value, fields []string, err error) {
	var bad *view.Error
	if !errors.As(err, &bad) || places[bad.Parameter].node == nil {
		d.errorf(v.atKey(), "%v", err)
		return
	}
	at := places[bad.Parameter]
	if bad.Parameter == "fields" {
		at = d.wrongField(at, fields)
	}
	if d.hasVariables(at) {
		d.errorf(at, "line %d, column %d of the text is wrong; what ${NAME} stands for is not shown", bad.Line, bad.Column)
		return
	}
	d.errorf(at, "%s", strings.TrimPrefix(err.Error(), bad.Parameter+", "))
}

// wrongField returns the first field that is wrong by itself, or all of them.
func (d *decoder) wrongField(v value, fields []string) value {
	list, _ := d.resolve(v)
	items, ok := list.node.(*ast.SequenceNode)
	for i, field := range fields {
		if _, err := view.Parse(view.Params{Fields: []string{field}}); err != nil && ok && i < len(items.Values) {
			return value{node: items.Values[i], path: fmt.Sprintf("%s[%d]", v.path, i)}
		}
	}
	return v
}

// hasVariables reports whether a text comes from the environment in part: then errors do
// not show it.
func (d *decoder) hasVariables(v value) bool {
	v, _ = d.resolve(v)
	switch n := v.node.(type) {
	case *ast.StringNode:
		return strings.Contains(n.Value, "${")
	case *ast.LiteralNode:
		return strings.Contains(n.Value.Value, "${")
	case *ast.SequenceNode:
		return slices.ContainsFunc(n.Values, func(n ast.Node) bool { return d.hasVariables(value{node: n}) })
	}
	return false
}

// views checks that every view is one of a watch and not, in the end, of itself, and reads
// what each selects.
func (d *decoder) views(c *Config) {
	for _, w := range c.Watches {
		d.named = append(d.named, w.Name)
	}
	for _, w := range c.Watches {
		declared, valid := d.watches[w.Name]
		if !valid || declared.viewOf == "" {
			continue
		}
		if at, ok := d.rootOf(w.Name); ok {
			declared.labelsAt = at
			d.watches[w.Name] = declared
			declared.read(at)
		}
	}
	for i := range c.Watches {
		w := &c.Watches[i]
		w.Definition, w.LabelsAt = d.definitions[w.Name], d.watches[w.Name].labelsAt
	}
}

// checkLabelsAt reports a place of labels that is no path.
func (d *decoder) checkLabelsAt(w *Watch, at value) {
	_, err := view.Parse(view.Params{LabelsAt: w.LabelsAt})
	var bad *view.Error
	if errors.As(err, &bad) {
		d.errorf(at, "%s", strings.TrimPrefix(bad.Error(), bad.Parameter+", "))
		w.LabelsAt = ""
	}
}

// rootOf returns where the labels are in the watch of which a view is a part in the end.
func (d *decoder) rootOf(name string) (labelsAt string, ok bool) {
	first := d.watches[name]
	path := []string{name}
	for w := first; w.viewOf != ""; w = d.watches[w.viewOf] {
		if _, there := d.watches[w.viewOf]; !there {
			if len(path) == 1 && !slices.Contains(d.named, w.viewOf) {
				d.checkWord(scalar{value: first.of, written: w.viewOf, expanded: w.viewOf}, "there is no watch", d.declaredNames())
			}
			return "", false
		}
		if slices.Contains(path, w.viewOf) {
			if w.viewOf == name && name == slices.Min(path) { // once for all of them
				d.errorf(first.of, "a view of itself: %s", d.circle(append(path, name)))
			}
			return "", false
		}
		path = append(path, w.viewOf)
	}
	return d.watches[path[len(path)-1]].labelsAt, true
}

// declaredNames returns the names of the watches that can have views.
func (d *decoder) declaredNames() []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(d.watches)), parameter.IsName)
}

// circle returns the names of views that lead back to the first, with their lines.
func (d *decoder) circle(path []string) string {
	var parts []string
	for _, name := range path {
		parts = append(parts, fmt.Sprintf("%s (line %d)", name, position(d.watches[name].of.node).Line))
	}
	return strings.Join(parts, " is of ")
}
