package config

import (
	"slices"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/headers"
	"github.com/watchtide/watchtide/internal/suggest"
)

// applied reports rules of access that would not be applied, and an operations listener that
// everybody could use.
func (d *decoder) applied(c *Config) {
	switch {
	case c.Auth.Given:
		d.operators(c)
	case d.flags.Auth == NoAuth:
		if at, ok := d.firstOfAccess(c); ok {
			d.Errs = append(d.Errs, &Error{Message: "--auth none: nobody would be asked, so that " + at.Path + " would not be applied; leave it out, or use a configuration without rules of access"})
		}
	case !c.Auth.None && d.IsGiven(&c.Auth): // it has a mistake, which was reported
	default:
		d.unapplied(c)
	}
}

// unapplied reports keys that need the section auth if there is none.
func (d *decoder) unapplied(c *Config) {
	problem := "there is no section auth, so that nobody would be asked; want one that says which credentials are accepted"
	if c.Auth.None {
		problem = "auth is none, so that nobody would be asked; want a section auth that says which credentials are accepted"
	}
	if at, ok := d.firstOfAccess(c); ok {
		d.Errorf(at, "%s", problem)
	}
	if c.Operations.Role != "" {
		d.Errorf(d.Given[&c.Operations.Role], "%s", problem)
	}
}

// firstOfAccess returns the place of the roles, or of the first rule. false: there is
// neither.
func (d *decoder) firstOfAccess(c *Config) (decode.Value, bool) {
	if len(c.Roles) > 0 {
		return d.Given[&c.Roles].AtKey(), true
	}
	at := func(name string, a *Allow) (decode.Value, bool) {
		path := "watches." + name + ".allow"
		if a.Kubernetes {
			return d.places[path], true
		}
		return d.places[path+"[0]"], len(a.Rules) > 0
	}
	for i := range c.Watches {
		if v, ok := at(c.Watches[i].Name, &c.Watches[i].Allow); ok {
			return v, true
		}
	}
	for _, t := range c.Templates {
		if v, ok := at(t.Name, &t.sample.Allow); ok {
			return v, true
		}
	}
	return decode.Value{}, false
}

// operators reports an operators' role that is not declared, and an operations listener that
// other machines can reach without such a role.
func (d *decoder) operators(c *Config) {
	listen, role := c.Operations.Listen, c.Operations.Role
	if role == "" && !d.IsGiven(&c.Operations.Role) && listen != OperationsOff && !headers.IsLoopback(listen) {
		d.reachable(c)
		return
	}
	var names []string
	for _, r := range c.Roles {
		names = append(names, r.Name)
	}
	switch {
	case role == "" || slices.Contains(names, role):
	case len(names) == 0:
		d.Errorf(d.Given[&c.Operations.Role], "there is no role %q; the section roles has none", d.written(&c.Operations.Role))
	default:
		d.Errorf(d.Given[&c.Operations.Role], "there is no role %q; %s", d.written(&c.Operations.Role), suggest.Sentence(role, names))
	}
}

// reachable adds the error that other machines can reach the operations listener.
func (d *decoder) reachable(c *Config) {
	const problem = "other machines can reach it, and no role says who the operators are; want operations.role, or an address such as 127.0.0.1:8081"
	if flag := d.flags.Operations; flag != "" {
		d.Errs = append(d.Errs, &Error{Message: "--operations " + flag + ": " + problem})
		return
	}
	d.Errorf(d.Given[&c.Operations.Listen], "%q: %s", d.written(&c.Operations.Listen), problem)
}

// written returns the text of a field as it is in the file, with variables not replaced.
func (d *decoder) written(field any) string {
	s, _ := d.Text(d.Given[field], "", nil)
	return s.Written
}
