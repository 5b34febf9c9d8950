package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/source/consul"
	"github.com/watchtide/watchtide/internal/view"
)

// labelsAt is where the labels of resources are, by type of source, if not in the object
// "labels".
var labelsAt = map[SourceType]string{Kubernetes: "metadata.labels", Consul: "metadata"}

// labelsAtOf is where the labels of the resources of a watch are.
func labelsAtOf(w *Watch, of SourceType) string {
	switch {
	case of == Consul && w.Consul.Collection == consul.Health:
		return "meta"
	case of == Consul && w.Consul.Collection == consul.KV:
		return ""
	}
	return labelsAt[of]
}

// isView reports whether the entry of a watch has the key view_of.
func (d *decoder) isView(v decode.Value) bool {
	errors := len(d.Errs)
	entries, _ := d.Entries(v)
	d.Errs = d.Errs[:errors] // they are reported when the entries are read
	return slices.ContainsFunc(entries, func(e decode.Entry) bool { return e.Name == "view_of" })
}

// readView reads the keys of a view. What it selects is read once all watches are known.
func (w *Watch) readView(d *decoder, v decode.Value) {
	entries, _ := d.Entries(v)
	var keys []decode.Key
	notOfViews := []string{"source", "labels_at"}
	for _, k := range d.KeysOf(w) {
		if slices.Contains(notOfViews, k.Name) || k.Of != nil && !slices.Contains(k.Of, string(View)) {
			notOfViews = append(notOfViews, k.Name)
			continue
		}
		keys = append(keys, k)
	}
	entries = slices.DeleteFunc(entries, func(given decode.Entry) bool {
		misplaced := slices.Contains(notOfViews, given.Name)
		if misplaced {
			d.Errorf(decode.Value{Node: given.Key, Path: v.Path}, "%s is for watches that have a source, and this one is a view of another", given.Name)
		}
		return misplaced
	})
	d.fillWatch(w, v, entries, keys)
	d.watches[w.Name] = declaredWatch{name: w.Name, viewOf: w.ViewOf, plain: w.Compression != "", of: d.Given[&w.ViewOf], read: w.definitionReader(d, v)}
}

// definitionReader returns what reads the definition of a view, or of a watch of a gateway
// source, given where labels are.
func (w *Watch) definitionReader(d *decoder, v decode.Value) func(string) {
	places := map[string]decode.Value{"prefix": d.Given[&w.Prefix], "filter": d.Given[&w.Filter], "labels": d.Given[&w.Labels], "fields": d.Given[&w.Fields], "order": d.Given[&w.Order], "limit": d.Given[&w.Limit], "offset": d.Given[&w.Offset]}
	params, name, t := w.viewParams(""), w.Name, d.template
	filter, order := option{}, option{}
	if t != nil {
		filter, order = t.given[&w.Filter], t.given[&w.Order]
	}
	isView := w.ViewOf != ""
	for _, field := range []any{&w.Prefix, &w.Filter, &w.Labels, &w.Fields, &w.Order, &w.Limit, &w.Offset, &w.By, &w.Sum} {
		if d.IsGiven(field) && d.reported(d.Given[field]) {
			return func(string) {} // a definition without it is not what was meant
		}
	}
	if d.IsGiven(&w.By) || d.IsGiven(&w.Sum) {
		return w.groupingReader(d, v, params)
	}
	return func(labelsAt string) {
		params.LabelsAt = labelsAt
		definition, err := view.Parse(params)
		if t != nil {
			if !decode.StandAlone(filter.text, t.sample, params, definition) {
				d.Errorf(places["filter"], "a parameter in a filter is a string; write it without quotation marks around it, as in value.team == {%s}", t.params[0].name)
				return
			}
		}
		switch {
		case !decode.WholeNames(order.text):
			d.Errorf(places["order"], "a parameter in an order is a whole name; write it without quotation marks around it, as in -{%s}", t.params[0].name)
		case err != nil:
			d.wrongDefinition(v, places, params.Fields, err)
		case !definition.IsWhole():
			d.definitions[name] = definition
		case isView:
			d.Errorf(v.AtKey(), "the view selects everything; want prefix, labels, filter or fields, order for the first ones, or by to count")
		}
	}
}

// groupingReader is definitionReader for a view that counts.
func (w *Watch) groupingReader(d *decoder, v decode.Value, params view.Params) func(string) {
	places := map[string]decode.Value{"by": d.Given[&w.By], "sum": d.Given[&w.Sum]}
	name, by, sum := w.Name, w.By, w.Sum
	return func(string) {
		if params.Prefix != "" || params.Filter != "" || params.Labels != "" || len(params.Fields) > 0 || params.Order != "" {
			d.Errorf(v.AtKey(), "a count is of all of another watch; want prefix, labels, filter, fields and order in a view of their own, and view_of that one here")
			return
		}
		g, err := view.ParseGrouping(by, sum)
		if err != nil {
			d.wrongDefinition(v, places, nil, err)
			return
		}
		d.groupings[name] = g
	}
}

// viewParams returns what a view selects, or a watch of a gateway source.
func (w *Watch) viewParams(labelsAt string) view.Params {
	p := view.Params{Prefix: w.Prefix, Filter: w.Filter, Labels: w.Labels, Fields: w.Fields, LabelsAt: labelsAt, Order: w.Order, Limit: decimal(w.Limit), Offset: decimal(w.Offset)}
	if w.ViewOf == "" {
		p.ValueSize = 1 // what a filter costs is for the other gateway to say
	}
	return p
}

// decimal returns a number as a parameter; nothing: 0.
func decimal(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// wrongDefinition reports a mistake in a definition, at the value that has it.
func (d *decoder) wrongDefinition(v decode.Value, places map[string]decode.Value, fields []string, err error) {
	var bad *view.Error
	if !errors.As(err, &bad) || places[bad.Parameter].Node == nil {
		d.Errorf(v.AtKey(), "%v", err)
		return
	}
	at := places[bad.Parameter]
	if bad.Parameter == "fields" {
		at = d.wrongField(at, fields)
	}
	if d.hasVariables(at) {
		d.Errorf(at, "line %d, column %d of the text is wrong; what ${NAME} stands for is not shown", bad.Line, bad.Column)
		return
	}
	d.Errorf(at, "%s", strings.TrimPrefix(err.Error(), bad.Parameter+", "))
}

// wrongField returns the first field that is wrong by itself, or all of them.
func (d *decoder) wrongField(v decode.Value, fields []string) decode.Value {
	list, _ := d.Resolve(v)
	items, ok := list.Node.(*ast.SequenceNode)
	for i, field := range fields {
		if _, err := view.Parse(view.Params{Fields: []string{field}}); err != nil && ok && i < len(items.Values) {
			return decode.Value{Node: items.Values[i], Path: fmt.Sprintf("%s[%d]", v.Path, i)}
		}
	}
	return v
}

// hasVariables reports whether a text comes from the environment in part: then errors do
// not show it.
func (d *decoder) hasVariables(v decode.Value) bool {
	v, _ = d.Resolve(v)
	switch n := v.Node.(type) {
	case *ast.StringNode:
		return strings.Contains(n.Value, "${")
	case *ast.LiteralNode:
		return strings.Contains(n.Value.Value, "${")
	case *ast.SequenceNode:
		return slices.ContainsFunc(n.Values, func(n ast.Node) bool { return d.hasVariables(decode.Value{Node: n}) })
	}
	return false
}

// views checks that every view is one of a watch and not, in the end, of itself, and reads
// what each selects.
func (d *decoder) views(c *Config) {
	d.lineage.watches = d.watches
	for _, w := range c.Watches {
		d.named = append(d.named, w.Name)
		if t := d.templatings[w.Name]; t != nil {
			d.lineage.templates = append(d.lineage.templates, t.of(w, d.lineage))
		}
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
		w.Definition, w.Grouping, w.LabelsAt = d.definitions[w.Name], d.groupings[w.Name], d.watches[w.Name].labelsAt
		if d.isPlain(w.Name) {
			w.Compression = Uncompressed
		}
	}
}

// Unseen returns the roles that read a count or a window of the configuration, and that no rule lets read all of
// what it is made of; of are the entries whose rules could, that of view_of first. The watch of a template is
// one of its watches.
func (c *Config) Unseen(w Watch) (roles, of []string) {
	var rules []Rule // that show all of one of these entries
	for on := w.ViewOf; on != "" && len(of) <= len(c.Watches)+len(c.Templates); {
		entry, one, ok := c.entry(on)
		if !ok {
			break // which was reported
		}
		of, on = append(of, entry), one.ViewOf
		for _, r := range one.Allow.Rules {
			if r.Read == "true" && len(r.Fields)+len(r.Except) == 0 {
				rules = append(rules, r)
			}
		}
	}
	for _, reader := range w.Allow.Rules {
		seen := func(r Rule) bool { return r.Role == reader.Role || c.isEverybody(r.Role) }
		if reader.Read != "" && !slices.Contains(roles, reader.Role) && !slices.ContainsFunc(rules, seen) {
			roles = append(roles, reader.Role)
		}
	}
	return roles, of
}

// entry returns the entry of "watches" that has the watch with a name, and the watch.
func (c *Config) entry(name string) (entry string, w Watch, ok bool) {
	for _, w := range c.Watches {
		if w.Name == name {
			return name, w, true
		}
	}
	for _, t := range c.Templates {
		if w, ok := t.fill(name); ok {
			return t.Name, w, true
		}
	}
	return "", Watch{}, false
}

// isEverybody reports whether all principals hold a role.
func (c *Config) isEverybody(role string) bool {
	return slices.ContainsFunc(c.Roles, func(r Role) bool { return r.Name == role && strings.TrimSpace(r.When) == "true" })
}

// checkLabelsAt reports a place of labels that is no path.
func (d *decoder) checkLabelsAt(w *Watch, at decode.Value) {
	_, err := view.Parse(view.Params{LabelsAt: w.LabelsAt})
	var bad *view.Error
	if errors.As(err, &bad) {
		d.Errorf(at, "%s", strings.TrimPrefix(bad.Error(), bad.Parameter+", "))
		w.LabelsAt = ""
	}
}
