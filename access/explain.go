package access

import (
	"maps"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// Explanation says what a policy makes of a principal and a watch.
type Explanation struct {
	// Roles are all roles of the policy.
	Roles []RoleExplanation
	// Rules are all rules of the watch; none: it is for nobody, unless there is a Cluster.
	Rules []RuleExplanation
	// Cluster is the resource of a Kubernetes cluster that decides instead; nil: the rules do.
	Cluster *ClusterResource
	// Additions are the fields that a rule leaves out and another one shows, of a resource that
	// both let the principal read. Without a resource, they may do so for different ones.
	Additions []Addition
	// Visible is Policy.Visible.
	Visible bool
	// Visibility is how much of the resource may be read.
	Visibility view.Visibility
	// Write is the decision about writing the resource again with the same value, and Delete
	// that about deleting it. Without a resource both are empty.
	Write, Delete Decision
}

// RoleExplanation says whether the principal holds a role.
type RoleExplanation struct {
	Name string
	Held bool
	// Why says why it is not held.
	Why string
	// With are the values that the role takes along, by name, if it is held.
	With map[string]any
}

// RuleExplanation says what one rule allows the principal.
type RuleExplanation struct {
	Number int // from 1
	Role   string
	Held   bool // the principal holds the role
	Read   ReadExplanation
	// Write and Delete say whether the rule could allow that for some resource.
	Write, Delete bool
}

// ReadExplanation says what a rule lets a principal read.
type ReadExplanation struct {
	// Filter is the condition of the rule for this principal; empty: it lets nothing be
	// read, and Why says why.
	Filter string
	Why    string
	// Fields are what it shows of values (all), and Except what it leaves out of that.
	Fields, Except []string
	// Holds reports whether the rule lets the resource be read.
	Holds bool
}

// Explain says which roles a principal holds, and what each rule of a watch allows. r is a
// resource to decide about; nil: none.
func (p *Policy) Explain(who *Principal, watch, key string, r *stream.Resource) Explanation {
	s := p.subject(who)
	out := Explanation{Visible: p.Visible(who, watch)}
	for _, role := range p.roles {
		out.Roles = append(out.Roles, role.explain(s))
	}
	w := p.rulesOf(watch)
	if w == nil {
		return out
	}
	out.Cluster = w.cluster
	deletes := p.standing(who, watch).deletes
	for i, rule := range w.all {
		_, held := s.held[rule.role]
		out.Rules = append(out.Rules, RuleExplanation{
			Number: i + 1, Role: rule.role.name, Held: held, Read: s.explainRead(w, rule, r),
			Write: s.could(rule, rule.write), Delete: deletes && s.could(rule, rule.delete),
		})
	}
	out.Additions = w.additions(func(i, by int) bool { return out.Rules[i].lets(r) && out.Rules[by].lets(r) })
	if r == nil {
		return out
	}
	out.Visibility = p.visibility(p.standing(who, watch).reading, r)
	out.Write, out.Delete = p.Write(who, watch, key, r, r), p.Delete(who, watch, key, r)
	return out
}

// lets reports whether a rule lets a resource be read; nil: whether it lets any.
func (e *RuleExplanation) lets(r *stream.Resource) bool {
	return e.Read.Filter != "" && (r == nil || e.Read.Holds)
}

func (r *role) explain(s *subject) RoleExplanation {
	given, why := r.holds(s.names)
	out := RoleExplanation{Name: r.name, Held: why == whyHeld, Why: why}
	for _, v := range r.with {
		if !out.Held {
			break
		}
		if out.With == nil {
			out.With = map[string]any{}
		}
		out.With[strings.TrimPrefix(v.name, "role.")] = given[v.name]
	}
	return out
}

// explainRead says what one rule lets be read.
func (s *subject) explainRead(w *rules, r rule, of *stream.Resource) (out ReadExplanation) {
	given, held := s.held[r.role]
	switch {
	case !held:
		out.Why = "the role is not held"
		return out
	case r.read == nil:
		out.Why = "the rule lets nothing be read"
		return out
	}
	b := r.read.Bind(given)
	g, some, err := r.grant(b)
	switch {
	case err != nil:
		out.Why = err.Error()
		return out
	case !some && b.Failed():
		out.Why = "read has no result, for instance because a claim is missing"
		return out
	case !some:
		out.Why = "read is false for this principal"
		return out
	}
	out.Filter, out.Fields, out.Except = g.Filter, g.Fields, g.Except
	if of == nil {
		return out
	}
	if d, err := view.Parse(view.Params{Grants: []view.Grant{g}, LabelsAt: w.labelsAt}); err == nil {
		visibility, failed := d.Visibility(*of)
		out.Holds = visibility != view.Hidden
		if failed != nil {
			out.Why = failed.Error()
		}
	}
	return out
}

// Watches returns the names of all watches with rules, in order.
func (p *Policy) Watches() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.watches)), func(name string) bool { return p.rulesOf(name) == nil })
}
