package access

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/internal/view"
)

// role is a compiled Role. Static after Compile.
type role struct {
	name string
	when *view.Expression
	with []value

	scopes map[view.Subject]*view.Scope // of its rules; owned by the compiler
}

type value struct {
	name  string // as it is in rules: role.NAME
	value *view.Expression
}

// rule is a compiled Rule. Static after Compile.
type rule struct {
	role                *role
	read, write, delete *view.Expression // nil: not allowed
	fields, except      []string
}

// rules are the compiled rules of a watch. Static after Compile.
type rules struct {
	name     string
	labelsAt string
	all      []rule
	cluster  *ClusterResource // which says who may read what instead; nil: the rules do
}

// principalNames are the names under which rules use a principal.
var principalNames = map[string]view.Type{
	"principal.mechanism": view.TextType, "principal.issuer": view.TextType, "principal.name": view.TextType,
	"principal.groups": view.TextsType, "principal.claims": view.ObjectType,
}

// CompilePolicy compiles a policy. An error is an Errors.
func CompilePolicy(c PolicyConfig) (*Policy, error) {
	k := compiler{policy: newPolicy()}
	scope, err := view.NewScope(principalNames, view.OfNothing)
	if err != nil {
		return nil, err
	}
	if len(c.Roles) > MaxRoles {
		k.report(&PolicyError{Role: MaxRoles, Watch: -1, Rule: -1}, "there are %d roles, and at most %d are allowed", len(c.Roles), MaxRoles)
	}
	for i, r := range c.Roles {
		k.role(scope, r, PolicyError{Role: i, Watch: -1, Rule: -1})
	}
	for i, w := range c.Watches {
		k.watch(w, PolicyError{Role: -1, Watch: i, Rule: -1})
	}
	if len(k.errs) > 0 {
		return nil, k.errs
	}
	for _, r := range k.policy.roles {
		r.scopes = nil
	}
	return k.policy, nil
}

// compiler collects mistakes.
type compiler struct {
	policy   *Policy
	declared []string // names of roles, also of those with mistakes
	errs     PolicyErrors
}

func (k *compiler) report(at *PolicyError, format string, args ...any) {
	at.Problem = fmt.Sprintf(format, args...)
	k.errs = append(k.errs, at)
}

// keyed returns the place of a key.
func (e PolicyError) keyed(key string) *PolicyError {
	e.Key = key
	return &e
}

// expression compiles one expression; nil: a mistake was reported, or it is empty.
func (k *compiler) expression(compile func(parameter, text string) (*view.Expression, error), at PolicyError, key, text string) *view.Expression {
	x, err := compile(key, text)
	if err == nil {
		return x
	}
	e := at.keyed(key)
	if errors.As(err, &e.In) {
		k.report(e, "%s", strings.TrimPrefix(e.In.Error(), key+", "))
		return nil
	}
	k.report(e, "%v", err)
	return nil
}

func (k *compiler) role(scope *view.Scope, c Role, at PolicyError) {
	if slices.Contains(k.declared, c.Name) {
		k.report(at.keyed("name"), "the role %q is declared twice", c.Name)
		return
	}
	k.declared = append(k.declared, c.Name)
	r := &role{name: c.Name, scopes: map[view.Subject]*view.Scope{}}
	mistakes := len(k.errs)
	r.when = k.expression(scope.CompileCondition, at, "when", c.When)
	if len(c.With) > MaxValues {
		k.report(at.keyed("with"), "there are %d values, and at most %d are allowed", len(c.With), MaxValues)
	}
	for _, v := range c.With {
		key := "with." + v.Name
		switch x := k.expression(scope.Compile, at, key, v.Expression); {
		case !isName(v.Name):
			k.report(at.keyed(key), "%q is no name for a value; want letters, digits and _, and no word of CEL", v.Name)
		case slices.ContainsFunc(r.with, func(other value) bool { return other.name == "role."+v.Name }):
			k.report(at.keyed(key), "the value %q is given twice", v.Name)
		default:
			r.with = append(r.with, value{"role." + v.Name, x})
		}
	}
	if len(k.errs) > mistakes {
		return
	}
	k.policy.roles = append(k.policy.roles, r)
}

// identifier is a name in CEL, and reserved are those that it has for itself.
var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	reserved   = strings.Fields("as break const continue else false for function if import in let loop package namespace null return true var void while")
)

func isName(name string) bool {
	return identifier.MatchString(name) && !slices.Contains(reserved, name)
}

// find returns the role with a name; nil: there is none without mistakes.
func (p *Policy) find(name string) *role {
	at := slices.IndexFunc(p.roles, func(r *role) bool { return r.name == name })
	if at < 0 {
		return nil
	}
	return p.roles[at]
}

func (k *compiler) watch(c WatchRules, at PolicyError) {
	if k.policy.watches[c.Name] != nil {
		k.report(&at, "the watch %q is given twice", c.Name)
		return
	}
	w := &rules{name: c.Name, labelsAt: c.LabelsAt, cluster: c.Cluster}
	k.policy.watches[c.Name] = w
	if c.Cluster != nil && len(c.Rules) > 0 {
		k.report(&at, "there are rules, and a cluster that says who may read what; want one of them")
		return
	}
	if len(c.Rules) > MaxRules {
		k.report(&at, "there are %d rules, and at most %d are allowed", len(c.Rules), MaxRules)
		return
	}
	for i, r := range c.Rules {
		at.Rule = i
		compiled, ok := k.rule(r, at)
		if !ok {
			continue
		}
		w.all = append(w.all, compiled)
	}
}

// rule compiles one rule. false: a mistake was reported, here or at its role.
func (k *compiler) rule(c Rule, at PolicyError) (rule, bool) {
	r := rule{role: k.policy.find(c.Role), fields: c.Fields, except: c.Except}
	mistakes := len(k.errs)
	switch {
	case c.Role == "":
		k.report(at.keyed("role"), "role is missing; want the name of a role")
	case !slices.Contains(k.declared, c.Role) && len(k.declared) == 0:
		k.report(at.keyed("role"), "there is no role %q; the section roles has none", c.Role)
	case !slices.Contains(k.declared, c.Role):
		k.report(at.keyed("role"), "there is no role %q; %s", c.Role, suggest.Sentence(c.Role, k.declared))
	}
	if c.Read == "" && c.Write == "" && c.Delete == "" {
		k.report(&at, "the rule allows nothing; want read, write or delete")
	}
	if len(c.Fields) > 0 && c.Read == "" {
		k.report(at.keyed("fields"), "fields are what read lets be seen of values; want read too")
	}
	if len(c.Except) > 0 && c.Read == "" {
		k.report(at.keyed("except"), "except is what read leaves out of values; want read too")
	}
	if k.fields(*at.keyed("fields"), view.Grant{Fields: c.Fields}) {
		k.fields(*at.keyed("except"), view.Grant{Fields: c.Fields, Except: c.Except})
	}
	if r.role == nil {
		return r, false
	}
	r.read = k.of(r.role, view.OfResource, at, "read", c.Read)
	r.write = k.of(r.role, view.OfWrite, at, "write", c.Write)
	r.delete = k.of(r.role, view.OfDelete, at, "delete", c.Delete)
	return r, len(k.errs) == mistakes
}

// fields checks what a rule shows of values. false: a mistake was reported.
func (k *compiler) fields(at PolicyError, shows view.Grant) bool {
	shows.Filter = "key == ''"
	_, err := view.Parse(view.Params{Grants: []view.Grant{shows}})
	if !errors.As(err, &at.In) {
		return true
	}
	k.report(&at, "%s", strings.TrimPrefix(at.In.Error(), "grants, "))
	return false
}

// grant returns what the rule lets be read with a binding; false: nothing.
func (r *rule) grant(b *view.Binding) (view.Grant, bool, error) {
	g, some, err := r.read.Grant(b, 0)
	g.Fields, g.Except = slices.Clone(r.fields), slices.Clone(r.except)
	return g, some, err
}

// of compiles an expression of a rule.
func (k *compiler) of(r *role, s view.Subject, at PolicyError, key, text string) *view.Expression {
	if text == "" {
		return nil
	}
	scope := r.scopes[s]
	if scope == nil {
		names := make(map[string]view.Type, len(principalNames)+len(r.with))
		for name, t := range principalNames {
			names[name] = t
		}
		for _, v := range r.with {
			names[v.name] = view.AnyType
		}
		made, err := view.NewScope(names, s)
		if err != nil {
			k.report(at.keyed(key), "%v", err)
			return nil
		}
		scope, r.scopes[s] = made, made
	}
	return k.expression(scope.CompileCondition, at, key, text)
}
