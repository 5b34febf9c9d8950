package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/config/internal/parameter"
	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/view"
)

// maxTemplateWatches is the most that "max" can be: /v1/watches lists all watches at once.
const maxTemplateWatches = 10_000

// Template is an entry of "watches" whose name has parameters, such as orders-{region}. It
// stands for one watch for each value that they can have.
//
// Static after Load. All its methods may be called from any goroutine.
type Template struct {
	// Name is the key under "watches".
	Name string
	// Max is how many of its watches may be open at a time.
	Max int

	sample   Watch          // one of the watches
	names    *regexp.Regexp // of its watches, with one group for each parameter
	params   []param        // in the order of the name
	options  []option       // those that use parameters
	labelsAt string         // of the watch of which the template makes views
	named    bool           // the upstream's name for each watch is its own
}

// param is a placeholder in the name of a template.
type param struct {
	name   string
	sample string
}

// option is a key whose text uses parameters.
type option struct {
	field int // which of textFields
	text  parameter.Text
	kind  text
}

// Sample returns one of the watches, to check what all have in common.
func (t *Template) Sample() Watch { return t.sample }

// Match reports whether the template has a watch with a name: the values of the parameters
// match, and can be written in the options.
func (t *Template) Match(name string) bool {
	_, ok := t.fill(name)
	return ok
}

// Watch returns the watch with a name; false: there is none.
func (t *Template) Watch(name string) (Watch, bool) {
	w, ok := t.fill(name)
	if !ok || w.Definition == nil {
		return w, ok
	}
	definition, err := view.Parse(w.viewParams(t.labelsAt))
	w.Definition = definition
	return w, err == nil
}

// fill returns the watch with a name, with the definition of the sample.
func (t *Template) fill(name string) (Watch, bool) {
	if stream.CheckWatchName(name) != nil {
		return Watch{}, false
	}
	found := t.names.FindStringSubmatch(name)
	if found == nil {
		return Watch{}, false
	}
	values := map[string]string{}
	for i, p := range t.params {
		values[p.name] = found[i+1]
	}
	w := t.sample
	w.Name = name
	if t.named {
		w.Watch = name
	}
	fields := textFields(&w)
	for _, o := range t.options {
		text, ok := o.kind.parameter.Fill(o.text, values)
		if !ok || !o.kind.allows(text) {
			return Watch{}, false
		}
		*fields[o.field] = text
	}
	return w, true
}

// templating is what is known of a template while its options are read. Owned by the
// decoder.
type templating struct {
	name     parameter.Text
	params   []param
	written  map[string]value // the regular expressions, by name
	sample   map[string]string
	names    *regexp.Regexp
	given    map[*string]option // by field
	options  []option
	used     map[string]bool
	max      int
	labelsAt string // of the watch of which the template makes views
}

// templateKeys are the keys of templates, in addition to those of a watch.
type templateKeys struct {
	// Params are the regular expressions of the parameters.
	Params templateParams `yaml:"params"`
	// Max is how many watches may be open at a time.
	Max int `yaml:"max"`
}

// templateParams is the key params, which is read before all others.
type templateParams struct{}

func (*templateParams) read(*decoder, value, key) {}

// readTemplate reads an entry whose name has parameters.
func (w *Watch) readTemplate(d *decoder, v value) {
	t := d.templating(w.Name, v)
	if t == nil {
		return
	}
	errors := len(d.errs)
	d.template = t
	w.readOptions(d, v)
	d.template = nil
	for i, field := range textFields(w) {
		if o, used := t.given[field]; used {
			o.field = i
			t.options = append(t.options, o)
		}
	}
	if len(d.errs) > errors {
		delete(d.watches, w.Name) // what it selects is not read
		return
	}
	w.checkUse(d, t)
	d.templatings[w.Name] = t
}

// checkStart checks that a template leaves it to subscribers to start its watches.
func (w *Watch) checkStart(d *decoder) {
	if w.Prime {
		d.errorf(d.given[&w.Prime].atKey(), "a template cannot be primed: the values of its parameters are not known at start")
	}
	if w.Required {
		d.errorf(d.given[&w.Required].atKey(), "a template cannot be required: its watches are started by their subscribers")
	}
}

// checkUse checks that each parameter makes a difference.
func (w *Watch) checkUse(d *decoder, t *templating) {
	of := d.declared[w.Source]
	if w.ViewOf == "" && (of == Store || w.Watch == w.Name) {
		return // the whole name is used
	}
	for _, p := range t.params {
		if !t.used[p.name] {
			d.errorf(t.written[p.name].atKey(),
				"no option uses {%s}, so that every value would lead to the same watch; use it, or leave it out of the name", p.name)
		}
	}
}

// templating reads the name and the parameters of a template; nil: an error was added.
func (d *decoder) templating(name string, v value) *templating {
	text, err := parameter.ParseName(name)
	if err != nil {
		d.errorf(value{node: v.key}, "%q: %v", name, err)
		return nil
	}
	t := &templating{name: text, sample: map[string]string{}, given: map[*string]option{}, used: map[string]bool{}}
	errors := len(d.errs)
	t.written = d.paramsOf(v, text)
	if len(d.errs) > errors {
		return nil
	}
	names := d.readParams(t, v)
	if len(d.errs) > errors {
		return nil
	}
	t.names = names
	if sample := text.Render(t.sample); stream.CheckWatchName(sample) != nil {
		d.errorf(value{node: v.key}, "%q: even with short values such as %q the name has %d bytes, of 64 at most", name, sample, len(sample))
		return nil
	}
	return t
}

// paramsOf returns the entries of the key params of a template.
func (d *decoder) paramsOf(v value, name parameter.Text) map[string]value {
	errors := len(d.errs)
	entries, ok := d.entries(v)
	if !ok {
		return nil
	}
	d.errs = d.errs[:errors] // keys that are given twice are reported when all are read
	at := slices.IndexFunc(entries, func(e entry) bool { return e.name == "params" })
	if at < 0 {
		d.errorf(v.atKey(), "params is missing; want a regular expression for each parameter of the name, such as params: { %s: \"[a-z]+\" }", name.Params()[0])
		return nil
	}
	params, _ := d.entries(entries[at].value)
	written := map[string]value{}
	for _, e := range params {
		written[e.name] = e.value
	}
	return written
}

// readParams reads the regular expression of each parameter, and returns that of names.
func (d *decoder) readParams(t *templating, v value) *regexp.Regexp {
	var names strings.Builder
	names.WriteString(`\A`)
	for _, p := range t.name {
		if p.Param == "" {
			names.WriteString(regexp.QuoteMeta(p.Literal))
			continue
		}
		at, given := t.written[p.Param]
		if !given {
			d.errorf(v.atKey(), "params has no %s, which is in the name; want a regular expression for it", p.Param)
			continue
		}
		expression, sample := d.readExpression(at)
		names.WriteString("(" + expression + ")")
		t.params = append(t.params, param{p.Param, sample})
		t.sample[p.Param] = sample
	}
	for _, name := range slices.Sorted(maps.Keys(t.written)) {
		if !t.name.Has(name) {
			d.errorf(t.written[name].atKey(), "the name has no {%s}; %s", name, suggest.Sentence(name, t.name.Params()))
		}
	}
	compiled, err := regexp.Compile(names.String() + `\z`)
	if err != nil {
		d.errorf(v.atKey(), "the regular expressions of params are too large together: %v", err)
	}
	return compiled
}

// readExpression reads the regular expression of a parameter.
func (d *decoder) readExpression(v value) (expression, sample string) {
	s, ok := d.text(v, "a regular expression", nil)
	if !ok {
		return "", ""
	}
	expression, sample, err := parameter.ParseExpression(s.expanded)
	if err != nil && s.written != s.expanded {
		err = parameter.ErrHidden
	}
	if err != nil {
		d.errorf(v, "%q: %v", s.written, err)
	}
	return expression, sample
}

// fillIn fills in the parameters in the text of an option of a template. false: an error
// was added.
func (d *decoder) fillIn(s *scalar, kind text) bool {
	if d.template == nil {
		return true
	}
	text := parameter.ParseText(s.written)
	params := text.Params()
	if len(params) == 0 {
		return true
	}
	for _, name := range params {
		if _, known := d.template.sample[name]; !known {
			d.errorf(s.value, "the name has no {%s}; %s", name, suggest.Sentence(name, slices.Sorted(maps.Keys(d.template.sample))))
			return false
		}
		d.template.used[name] = true
	}
	if kind.parameter == nil {
		d.errorf(s.value, "%q: a parameter cannot be used here", s.written)
		return false
	}
	for i := range text {
		text[i].Literal, _ = parameter.Expand(text[i].Literal, d.env.Getenv) // checked with the whole text
	}
	if kind.parameter.Prefix && text[len(text)-1].Literal == "" {
		last := params[len(params)-1]
		d.errorf(s.value, "%q: the prefix ends with {%s}, so that one value would select what belongs to longer ones; end it with a separator, as in {%s}/", s.written, last, last)
		return false
	}
	filled, ok := kind.parameter.Fill(text, d.template.sample)
	if !ok {
		d.errorf(s.value, "%q: a value such as %q cannot be used here; want %s", s.written, d.template.sample[params[0]], kind.want)
		return false
	}
	s.expanded, s.text = filled, text
	return true
}

// textFields returns the texts of a watch, always in the same order.
func textFields(w *Watch) []*string {
	return []*string{
		&w.Collection, &w.Watch, &w.Prefix, &w.Filter, &w.Labels, &w.Bucket, &w.Keys,
		&w.Kubernetes.Group, &w.Kubernetes.Version, &w.Kubernetes.Resource, &w.Kubernetes.Namespace,
		&w.Kubernetes.LabelSelector, &w.Kubernetes.FieldSelector,
		&w.Consul.ResourceType, &w.Consul.Partition, &w.Consul.Namespace, &w.Consul.NamePrefix,
	}
}

// templates moves the templates from the watches to a list of their own.
func (d *decoder) templates(c *Config) {
	for _, w := range c.Watches {
		if t := d.templatings[w.Name]; t != nil {
			c.Templates = append(c.Templates, t.of(w))
		}
	}
	c.Watches = slices.DeleteFunc(c.Watches, func(w Watch) bool { return parameter.IsName(w.Name) })
}

// of returns the template of which w has been read.
func (t *templating) of(w Watch) *Template {
	out := &Template{
		Name: w.Name, Max: t.max, names: t.names, params: t.params, options: t.options, labelsAt: t.labelsAt,
		named: w.Watch == w.Name,
	}
	out.sample = w
	out.sample.Name = t.name.Render(t.sample)
	if out.named {
		out.sample.Watch = out.sample.Name
	}
	return out
}
