package config

import (
	"strings"
	"testing"
)

// TestRulesThatWouldNotBeApplied checks that each mistake between auth, roles, allow and
// operations.role is reported at its place, once, and without what variables stand for.
func TestRulesThatWouldNotBeApplied(t *testing.T) {
	const sources = "sources: { local: { type: store } }\n"
	const roles = "roles: { staff: { when: 'true' } }\n"
	const nobodyAsked = "there is no section auth, so that nobody would be asked; want one that says which credentials are accepted"
	for name, c := range map[string]struct {
		text  string
		flags Flags
		want  string // empty: there is no mistake
	}{
		"roles, no auth":           {roles, Flags{}, "f:2:1: roles: " + nobodyAsked},
		"rules, no auth, no roles": {"watches:\n  a: { source: local, allow: [{ role: staff, read: 'true' }] }", Flags{}, `there is no role "staff"; the section roles has none`},
		"roles, auth: none":        {"auth: none\n" + roles, Flags{}, "f:3:1: roles: auth is none, so that nobody would be asked; want a section auth that says which credentials are accepted"},
		"roles, --auth none":       {"auth: {}\n" + roles, Flags{Auth: NoAuth}, "--auth none: nobody would be asked, so that roles would not be applied; leave it out, or use a configuration without rules of access"},
		"a role, no auth":          {"operations: { role: staff }", Flags{}, "f:2:21: operations.role: " + nobodyAsked},
		"a role, auth: none":       {"auth: none\noperations: { role: staff }", Flags{}, "f:3:21: operations.role: auth is none, "},
		"a role that is misspelt":  {"auth: {}\noperations: { role: stuff }\n" + roles, Flags{}, `f:3:21: operations.role: there is no role "stuff"; did you mean "staff"?`},
		"a role, and there are no": {"auth: {}\noperations: { role: staff }", Flags{}, `f:3:21: operations.role: there is no role "staff"; the section roles has none`},
		"a role from a variable":   {"auth: {}\noperations: { role: '${NAME}' }\n" + roles, Flags{}, `f:3:21: operations.role: there is no role "${NAME}"; there are staff`},
		"operations for all":       {"auth: {}\noperations: { listen: ':0' }\n" + roles, Flags{}, `f:3:23: operations.listen: ":0": other machines can reach it, and no role says who the operators are; want operations.role, or an address such as 127.0.0.1:8081`},
		"operations by a flag":     {"auth: {}\n" + roles, Flags{Operations: ":0"}, "--operations :0: other machines can reach it, and no role"},
		"a mistake in auth":        {"auth: nobody\n" + roles, Flags{}, `f:2:7: auth: "nobody": want none, which lets everybody`},

		"operations for a role": {"auth: {}\noperations: { listen: ':0', role: staff }\n" + roles, Flags{}, ""},
		"no operations":         {"auth: {}\noperations: { listen: off }\n" + roles, Flags{}, ""},
		"operations here":       {"auth: {}\n" + roles, Flags{Operations: "127.0.0.1:0"}, ""},
		"nothing, --auth none":  {"auth: {}\n", Flags{Auth: NoAuth}, ""},
	} {
		env := Environment{Flags: c.flags, Getenv: func(string) (string, bool) { return "s3cret", true }}
		_, err := Parse("f", []byte(sources+c.text), env)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
			continue
		}
		if lines := strings.Split(err.Error(), "\n"); len(lines) > 1 && name != "rules, no auth, no roles" {
			t.Errorf("%s: it is reported as %q", name, lines)
		}
	}
}

// TestTheFirstRuleIsNamed if there are rules and no roles without a mistake, in templates
// too.
func TestTheFirstRuleIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"watches:\n  a: { source: local, allow: [{ role: b, read: 'true' }] }":                                "f:3:31: watches.a.allow[0]: there is no section auth",
		"watches:\n  'a-{x}': { source: local, params: { x: '[a-z]+' }, allow: [{ role: b, read: 'true' }] }": "f:3:62: watches.a-{x}.allow[0]: there is no section auth",
	} {
		_, err := Parse("f", []byte("sources: { local: { type: store } }\n"+text), Environment{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}
