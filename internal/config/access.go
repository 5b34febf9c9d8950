package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// Role is one entry of "roles": who holds it, and the values that its rules can use.
type Role struct {
	// Name is the key under "roles".
	Name string `yaml:"-"`
	// When is a condition over the principal, in CEL; see package access.
	When string `yaml:"when,required,is=expression"`
	// With are values that the rules of the role use, by name: expressions over the
	// principal.
	With RoleValues `yaml:"with"`
}

// RoleValues is the key "with" of a role.
type RoleValues []access.RoleValue

// Rule is one entry of "allow": what the holders of a role may do with a watch.
type Rule struct {
	// Role is the name of an entry of "roles".
	Role string `yaml:"role,required"`
	// Read, Write and Delete are conditions in CEL; see package access. Empty: the rule does
	// not allow it.
	Read   string `yaml:"read,is=expression"`
	Write  string `yaml:"write,is=expression"`
	Delete string `yaml:"delete,is=expression"`
	// Fields are the paths of values that the rule lets be read (all).
	Fields []string `yaml:"fields"`
	// Except are the paths of what the rule leaves out of that (nothing).
	Except []string `yaml:"except"`
}

// Allow is the key "allow" of a watch: a list of rules, or the word AllowKubernetes.
type Allow struct {
	Rules []Rule `yaml:"-"`
	// Kubernetes reports whether the cluster of the watch says who may read what of it.
	Kubernetes bool `yaml:"-"`
}

// AllowKubernetes is the word that lets a cluster say who may read what.
const AllowKubernetes = "kubernetes"

// given reports whether anybody may be allowed anything.
func (a *Allow) given() bool { return len(a.Rules) > 0 || a.Kubernetes }

// read reads the rules, or the word.
func (a *Allow) read(d *decoder, v decode.Value, k decode.Key) {
	v, ok := d.Resolve(v)
	if !ok {
		return
	}
	if decode.KindOf(v.Node) == "a list" {
		k.Into = &a.Rules
		d.Read(v, k)
		return
	}
	const want = "a list of rules, or kubernetes, which lets the cluster of the watch say who may read what"
	d.places[v.Path] = v
	_, a.Kubernetes = d.TextOf(v, decode.Text{Want: want, Valid: func(s string) bool { return s == AllowKubernetes }})
}

// read reads the role, and records where its keys are.
func (r *Role) read(d *decoder, v decode.Value, _ decode.Key) {
	d.Section(v, r)
	d.remember(v, r)
}

// read reads names and expressions.
func (r *RoleValues) read(d *decoder, v decode.Value, _ decode.Key) {
	entries, _ := d.Entries(v)
	for _, e := range entries {
		var text string
		d.ReadText(e.Value, texts["expression"], &text)
		d.places[e.Path] = e.Value
		*r = append(*r, access.RoleValue{Name: e.Name, Expression: text})
	}
}

// read reads the rule, and records where its keys are.
func (r *Rule) read(d *decoder, v decode.Value, _ decode.Key) {
	d.Section(v, r)
	d.remember(v, r)
}

// remember records the places of a section and of its keys, by their paths.
func (d *decoder) remember(v decode.Value, section any) {
	d.places[v.Path] = v
	for _, k := range d.KeysOf(section) {
		if given, ok := d.Given[k.Into]; ok && given.Path == decode.Join(v.Path, k.Name) { // and not one that is misspelt
			d.places[decode.Join(v.Path, k.Name)] = given
		}
	}
}

// policy compiles the rules of access. It returns nil if there are neither roles nor rules.
func (d *decoder) policy(c *Config) {
	rules := access.PolicyConfig{}
	paths := []string{} // of the watches
	for _, r := range c.Roles {
		rules.Roles = append(rules.Roles, access.Role{Name: r.Name, When: r.When, With: r.With})
	}
	add := func(w *Watch) {
		if w.Allow.given() {
			rules.Watches = append(rules.Watches, access.WatchRules{Name: w.Name, LabelsAt: w.LabelsAt, Rules: policyRules(w.Allow.Rules), Cluster: d.clusterResource(c, w)})
			paths = append(paths, "watches."+w.Name+".allow")
		}
	}
	for i := range c.Watches {
		add(&c.Watches[i])
	}
	for _, t := range c.Templates {
		sample := t.sample
		sample.Name = t.Name
		add(&sample)
	}
	if len(rules.Roles)+len(rules.Watches) == 0 {
		return
	}
	compiled, err := access.CompilePolicy(rules)
	var mistakes access.PolicyErrors
	switch {
	case errors.As(err, &mistakes):
		for _, m := range mistakes {
			d.wrongPolicy(c, paths, m)
		}
	case err != nil:
		d.At(1, 1, "the rules of access: %v", err)
	default:
		c.Policy = compiled
	}
}

// clusterResource returns the resource about which the cluster of a watch is asked; nil: it is not. For a
// view, that is the resource of the watch that it leads to: a view has the keys of that, and so its
// namespaces. It reports a watch for which the cluster cannot decide.
func (d *decoder) clusterResource(c *Config, w *Watch) *access.ClusterResource {
	if !w.Allow.Kubernetes {
		return nil
	}
	at := d.places["watches."+w.Name+".allow"]
	root, fixed, ok := d.rootWatch(c, w)
	switch {
	case !ok && d.countsOn(c, w):
		d.Errorf(at, "allow: kubernetes is for namespaces, and a count that the configuration declares counts all of them; want rules, or leave the count out: clients may count what they may see")
		return &access.ClusterResource{}
	case !ok: // which is reported elsewhere
		return &access.ClusterResource{}
	case d.declared[root.Source] != Kubernetes:
		d.Errorf(at, "allow: kubernetes is for watches of kubernetes sources, and views of these; want rules")
	case c.Auth.Given && c.Auth.Kubernetes.Source != root.Source:
		d.Errorf(at, "allow: kubernetes needs the users of the source %q; want auth.kubernetes.source: %s", root.Source, root.Source)
	case w.Writable && !w.Kubernetes.Impersonate:
		d.Errorf(at, "with allow: kubernetes and writable, the gateway would write with its own rights; want impersonate: true, so that the cluster decides about writes too, or leave out writable")
	case !fixed:
		d.Errorf(at, "allow: kubernetes asks about one resource, and here a parameter is in group, resource or namespace; want rules, or parameters in label_selector or field_selector, or in a view, only")
	}
	return &access.ClusterResource{
		Group: root.Kubernetes.Group, Resource: root.Kubernetes.Resource, Namespace: root.Kubernetes.Namespace, Writes: w.Writable,
	}
}

// rootWatch returns the watch with a source that a watch leads to, which is itself unless it is a view.
// fixed reports whether all watches of the entry lead to objects of the same resource and namespaces.
// ok is false if there is none, or its entry has a mistake.
func (d *decoder) rootWatch(c *Config, w *Watch) (root Watch, fixed, ok bool) {
	declared, valid := d.watches[w.Name]
	path, ok := d.lineage.follow(declared)
	if !valid || !ok {
		return Watch{}, false, false
	}
	if d.countsOn(c, w) {
		return Watch{}, false, false
	}
	last := path[len(path)-1].name
	if i := slices.IndexFunc(c.Watches, func(one Watch) bool { return one.Name == last }); i >= 0 {
		return c.Watches[i], true, true
	}
	i := slices.IndexFunc(c.Templates, func(one *Template) bool { return one.Name == last })
	if i < 0 {
		return Watch{}, false, false
	}
	t := c.Templates[i]
	if decode.IsName(w.Name) {
		return t.sample, t.hasFixedResource(), true
	}
	root, ok = t.fill(path[len(path)-2].viewOf)
	return root, true, ok
}

// countsOn reports whether a watch is a count, or a view of one.
func (d *decoder) countsOn(c *Config, w *Watch) bool {
	path, _ := d.lineage.follow(d.watches[w.Name])
	return slices.ContainsFunc(path, func(on declaredWatch) bool {
		return slices.ContainsFunc(c.Watches, func(one Watch) bool { return one.Name == on.name && len(one.By) > 0 }) ||
			slices.ContainsFunc(c.Templates, func(one *Template) bool { return one.Name == on.name && len(one.sample.By) > 0 })
	})
}

func policyRules(allow []Rule) (out []access.Rule) {
	for _, r := range allow {
		out = append(out, access.Rule{Role: r.Role, Read: r.Read, Write: r.Write, Delete: r.Delete, Fields: r.Fields, Except: r.Except})
	}
	return out
}

// wrongPolicy reports a mistake in the rules of access, at the value that has it. If the key is
// not in the file, or could not be read, that was reported before.
func (d *decoder) wrongPolicy(c *Config, paths []string, m *access.PolicyError) {
	path := ""
	switch {
	case m.Role >= 0 && m.Role < len(c.Roles):
		path = "roles." + c.Roles[m.Role].Name
	case m.Watch >= 0 && m.Rule >= 0:
		path = paths[m.Watch] + "[" + strconv.Itoa(m.Rule) + "]"
	case m.Watch >= 0:
		path = strings.TrimSuffix(paths[m.Watch], ".allow")
	}
	at, known := d.places[decode.Join(path, m.Key)]
	if m.Key == "" {
		at, known = d.places[path]
	}
	switch {
	case m.Key == "" && !known: // too many of something
		d.At(1, 1, "%s: %s", path, m.Problem)
	case !known, d.reported(at):
	case m.In != nil && d.hasVariables(at):
		d.Errorf(at, "line %d, column %d of the text is wrong; what ${NAME} stands for is not shown", m.In.Line, m.In.Column)
	default:
		d.Errorf(at, "%s", m.Problem)
	}
}

// reported reports whether there is an error at the place of a value already.
func (d *decoder) reported(v decode.Value) bool {
	at := decode.Position(v.Node)
	return slices.ContainsFunc(d.Errs, func(e *Error) bool { return e.Line == max(at.Line, 1) && e.Column == max(at.Column, 1) })
}
