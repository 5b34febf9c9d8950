package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// maxTemplateWatches is the most that "max" can be: /v1/watches lists all watches at once.
const maxTemplateWatches = 10_000

// defaultTemplateWatches is what "max" is unless it is given: watch.DefaultMaxWatches.
const defaultTemplateWatches = 100

// Template is an entry of "watches" whose name has parameters, such as orders-{region}. It
// stands for one watch for each value that they can have.
//
// Static after Load. All its methods may be called from any goroutine.
type Template struct {
	// Name is the key under "watches".
	Name string
	// Max is how many of its watches may be open at a time.
	Max int
	// MaxPerClient is how many of them one client may use at a time (three quarters of Max).
	MaxPerClient int

	sample  Watch          // one of the watches
	names   *regexp.Regexp // of its watches, with one group for each parameter
	params  []param        // in the order of the name
	options []option       // those that use parameters
	named   bool           // the upstream's name for each watch is its own
	lineage *lineage
}

// param is a placeholder in the name of a template.
type param struct {
	name   string
	sample string
}

// option is a key whose text uses parameters.
type option struct {
	field int // which of textFields
	text  decode.TemplateText
	kind  decode.Text
}

// Sample returns one of the watches, to check what all have in common.
func (t *Template) Sample() Watch { return t.sample }

// LabelsAt returns the path of the object that holds the labels of resources of the watches.
func (t *Template) LabelsAt() string { return t.sample.LabelsAt }

// Match reports whether the template has a watch with a name: the values of the parameters
// match, and can be written in the options, and there is the watch of which it is a view.
func (t *Template) Match(name string) bool {
	_, ok := t.filled(name)
	return ok
}

// Watch returns the watch with a name; false: there is none.
func (t *Template) Watch(name string) (Watch, bool) {
	w, ok := t.filled(name)
	if !ok || w.Definition == nil {
		return w, ok
	}
	labelsAt := ""
	if w.ViewOf != "" {
		labelsAt = w.LabelsAt
	}
	definition, err := view.Parse(w.viewParams(labelsAt))
	w.Definition = definition
	return w, err == nil
}

// filled returns the watch with a name, with the definition of the sample.
func (t *Template) filled(name string) (Watch, bool) {
	w, ok := t.fill(name)
	if !ok || w.ViewOf == "" {
		return w, ok
	}
	path, ok := t.lineage.follow(declaredWatch{name: t.Name, viewOf: w.ViewOf})
	w.LabelsAt = path[len(path)-1].labelsAt
	return w, ok
}

// fill returns the watch with a name, with the definition of the sample. It does not look
// at the watch of which that is a view.
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
		text, ok := o.kind.Parameter.Fill(o.text, values)
		if !ok || !o.kind.Allows(text) {
			return Watch{}, false
		}
		*fields[o.field] = text
	}
	return w, true
}

// templating is what is known of a template while its options are read. Owned by the
// decoder.
type templating struct {
	name    decode.TemplateText
	params  []param
	written map[string]decode.Value // the regular expressions, by name
	sample  map[string]string
	names   *regexp.Regexp
	given   map[*string]option // by field
	options []option
	used    map[string]bool
	max     int

	maxPerClient int
}

// templateKeys are the keys of templates, in addition to those of a watch.
type templateKeys struct {
	// Params are the regular expressions of the parameters.
	Params templateParams `yaml:"params"`
	// Max is how many watches may be open at a time.
	Max int `yaml:"max"`
	// MaxPerClient is how many of them one client may use at a time.
	MaxPerClient int `yaml:"max_per_client"`
}

// templateParams is the key params, which is read before all others.
type templateParams struct{}

func (*templateParams) read(*decoder, decode.Value, decode.Key) {}

// readTemplate reads an entry whose name has parameters.
func (w *Watch) readTemplate(d *decoder, v decode.Value) {
	t := d.templating(w.Name, v)
	if t == nil {
		return
	}
	errors := len(d.Errs)
	d.template = t
	w.readOptions(d, v)
	d.template = nil
	for i, field := range textFields(w) {
		if o, used := t.given[field]; used {
			o.field = i
			t.options = append(t.options, o)
		}
	}
	if len(d.Errs) > errors {
		delete(d.watches, w.Name) // what it selects is not read
		return
	}
	w.checkUse(d, t)
	d.templatings[w.Name] = t
}

// checkStart checks that a template leaves it to subscribers to start its watches.
func (w *Watch) checkStart(d *decoder) {
	if w.Prime {
		d.Errorf(d.Given[&w.Prime].AtKey(), "a template cannot be primed: the values of its parameters are not known at start")
	}
	if w.Required {
		d.Errorf(d.Given[&w.Required].AtKey(), "a template cannot be required: its watches are started by their subscribers")
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
			d.Errorf(t.written[p.name].AtKey(),
				"no option uses {%s}, so that every value would lead to the same watch; use it, or leave it out of the name", p.name)
		}
	}
}

// templating reads the name and the parameters of a template; nil: an error was added.
func (d *decoder) templating(name string, v decode.Value) *templating {
	text, err := decode.ParseName(name)
	if err != nil {
		d.Errorf(decode.Value{Node: v.Key}, "%q: %v", name, err)
		return nil
	}
	t := &templating{name: text, sample: map[string]string{}, given: map[*string]option{}, used: map[string]bool{}}
	errors := len(d.Errs)
	t.written = d.paramsOf(v, text)
	if len(d.Errs) > errors {
		return nil
	}
	names := d.readParams(t, v)
	if len(d.Errs) > errors {
		return nil
	}
	t.names = names
	if sample := text.Render(t.sample); stream.CheckWatchName(sample) != nil {
		d.Errorf(decode.Value{Node: v.Key}, "%q: even with short values such as %q the name has %d bytes, of 64 at most", name, sample, len(sample))
		return nil
	}
	return t
}

// paramsOf returns the entries of the key params of a template.
func (d *decoder) paramsOf(v decode.Value, name decode.TemplateText) map[string]decode.Value {
	errors := len(d.Errs)
	entries, ok := d.Entries(v)
	if !ok {
		return nil
	}
	d.Errs = d.Errs[:errors] // keys that are given twice are reported when all are read
	at := slices.IndexFunc(entries, func(e decode.Entry) bool { return e.Name == "params" })
	if at < 0 {
		d.Errorf(v.AtKey(), "params is missing; want a regular expression for each parameter of the name, such as params: { %s: \"[a-z]+\" }", name.Params()[0])
		return nil
	}
	params, _ := d.Entries(entries[at].Value)
	written := map[string]decode.Value{}
	for _, e := range params {
		written[e.Name] = e.Value
	}
	return written
}

// readParams reads the regular expression of each parameter, and returns that of names.
func (d *decoder) readParams(t *templating, v decode.Value) *regexp.Regexp {
	var names strings.Builder
	names.WriteString(`\A`)
	for _, p := range t.name {
		if p.Param == "" {
			names.WriteString(regexp.QuoteMeta(p.Literal))
			continue
		}
		at, given := t.written[p.Param]
		if !given {
			d.Errorf(v.AtKey(), "params has no %s, which is in the name; want a regular expression for it", p.Param)
			continue
		}
		expression, sample := d.readExpression(at)
		names.WriteString("(" + expression + ")")
		t.params = append(t.params, param{p.Param, sample})
		t.sample[p.Param] = sample
	}
	for _, name := range slices.Sorted(maps.Keys(t.written)) {
		if !t.name.Has(name) {
			d.Errorf(t.written[name].AtKey(), "the name has no {%s}; %s", name, suggest.Sentence(name, t.name.Params()))
		}
	}
	compiled, err := regexp.Compile(names.String() + `\z`)
	if err != nil {
		d.Errorf(v.AtKey(), "the regular expressions of params are too large together: %v", err)
	}
	return compiled
}

// readExpression reads the regular expression of a parameter.
func (d *decoder) readExpression(v decode.Value) (expression, sample string) {
	s, ok := d.Text(v, "a regular expression", nil)
	if !ok {
		return "", ""
	}
	expression, sample, err := decode.ParseExpression(s.Expanded)
	if err != nil && s.Written != s.Expanded {
		err = decode.ErrHidden
	}
	if err != nil {
		d.Errorf(v, "%q: %v", s.Written, err)
	}
	return expression, sample
}

// FillIn fills in the parameters in the text of an option of a template. false: an error
// was added.
func (d *decoder) FillIn(s *decode.Scalar, kind decode.Text) bool {
	if d.template == nil {
		return true
	}
	text := decode.ParseText(s.Written)
	params := text.Params()
	if len(params) == 0 {
		return true
	}
	for _, name := range params {
		if _, known := d.template.sample[name]; !known {
			d.Errorf(s.Value, "the name has no {%s}; %s", name, suggest.Sentence(name, slices.Sorted(maps.Keys(d.template.sample))))
			return false
		}
		d.template.used[name] = true
	}
	if kind.Parameter == nil {
		d.Errorf(s.Value, "%q: a parameter cannot be used here", s.Written)
		return false
	}
	for i := range text {
		text[i].Literal, _ = decode.Expand(text[i].Literal, d.Env.Getenv) // checked with the whole text
	}
	if kind.Parameter.Prefix && text[len(text)-1].Literal == "" {
		last := params[len(params)-1]
		d.Errorf(s.Value, "%q: the prefix ends with {%s}, so that one value would select what belongs to longer ones; end it with a separator, as in {%s}/", s.Written, last, last)
		return false
	}
	filled, ok := kind.Parameter.Fill(text, d.template.sample)
	if !ok {
		d.Errorf(s.Value, "%q: a value such as %q cannot be used here; want %s", s.Written, d.template.sample[params[0]], kind.Want)
		return false
	}
	s.Expanded, s.Text = filled, text
	return true
}

// Filled records an option that uses parameters.
func (d *decoder) Filled(into *string, s decode.Scalar, kind decode.Text) {
	d.template.given[into] = option{text: s.Text, kind: kind}
}

// fieldOfViewOf is which of textFields is ViewOf.
const fieldOfViewOf = 0

// textFields returns the texts of a watch, always in the same order.
func textFields(w *Watch) []*string {
	return []*string{
		&w.ViewOf, &w.Collection, &w.Watch, &w.Prefix, &w.Filter, &w.Labels, &w.Bucket, &w.Keys,
		&w.Kubernetes.Group, &w.Kubernetes.Version, &w.Kubernetes.Resource, &w.Kubernetes.Namespace,
		&w.Kubernetes.LabelSelector, &w.Kubernetes.FieldSelector,
		&w.Postgres.Name,
		&w.Consul.Type, &w.Consul.Partition, &w.Consul.Namespace, &w.Consul.NamePrefix, &w.Consul.Service,
		&w.Order,
	}
}

// hasFixedResource reports whether no parameter is in what says which resource of a cluster, and which
// namespace of it, the watches are of.
func (t *Template) hasFixedResource() bool {
	of := &t.sample.Kubernetes
	fields := textFields(&t.sample)
	return !slices.ContainsFunc(t.options, func(o option) bool {
		return slices.Contains([]*string{&of.Group, &of.Resource, &of.Namespace}, fields[o.field])
	})
}

// templates moves the templates from the watches to a list of their own.
func (d *decoder) templates(c *Config) {
	for _, w := range c.Watches {
		if decode.IsName(w.Name) {
			d.lineage.setDefinition(w)
		}
	}
	c.Templates = d.lineage.templates
	c.Watches = slices.DeleteFunc(c.Watches, func(w Watch) bool { return decode.IsName(w.Name) })
}

// of returns the template of which w has been read.
func (t *templating) of(w Watch, l *lineage) *Template {
	out := &Template{
		Name: w.Name, Max: t.max, MaxPerClient: t.maxPerClient, names: t.names, params: t.params, options: t.options, named: w.Watch == w.Name, lineage: l,
	}
	out.sample = w
	out.sample.Name = t.name.Render(t.sample)
	if out.named {
		out.sample.Watch = out.sample.Name
	}
	return out
}
