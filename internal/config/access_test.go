package config

import (
	"strings"
	"testing"

	"github.com/watchtide/watchtide/access"
)

const everyKeyOfAccess = `
auth: {}
operations: { role: staff }
sources: { local: { type: store } }
roles:
  staff:  { when: '"staff" in principal.groups' }
  tenant: { when: has(principal.claims.tenant), with: { tenant: principal.claims.tenant } }
watches:
  orders:
    source: local
    compression: none
    allow:
      - { role: staff, read: "true", write: "true", delete: "true" }
      - { role: tenant, read: value.tenant == role.tenant, fields: [status, eta] }
`

// TestAccess checks that rules apply to the watches, templates and views that have them.
func TestAccess(t *testing.T) {
	c := parse(t, `
auth: {}
sources: { local: { type: store } }
roles: { anyone: { when: "true" } }
watches:
  orders: { source: local, labels_at: meta, allow: [{ role: anyone, read: 'labels.a == "b"' }] }
  mine: { view_of: orders, prefix: a, allow: [{ role: anyone, read: 'labels.a == principal.name' }] }
  "of-{region}": { source: local, params: { region: "[a-z]+" }, labels_at: tags, allow: [{ role: anyone, read: 'labels.x == "y" && {"a": 1}.a == 1' }] }
  "part-{team}": { view_of: orders, params: { team: "[a-z]+" }, prefix: "{team}/", allow: [{ role: anyone, read: 'labels.x == "z"' }] }
  closed: { source: local }
`)
	who := &access.Principal{Name: "ann"}
	for watch, want := range map[string]struct{ filter, labelsAt string }{
		"orders": {`labels.a == "b"`, "meta"}, "mine": {`labels.a == "ann"`, "meta"},
		"of-{region}": {`labels.x == "y" && {"a": 1}.a == 1`, "tags"}, "part-{team}": {`labels.x == "z"`, "meta"},
	} {
		d, ok := c.Policy.View(who, watch)
		if p := d.Params(); !ok || len(p.Grants) != 1 || p.Grants[0].Filter != want.filter || p.LabelsAt != want.labelsAt {
			t.Errorf("%s: got %+v, want %+v", watch, p, want)
		}
	}
	if c.Policy.Visible(who, "closed") {
		t.Error("a watch without rules is visible")
	}
	if c := parse(t, "sources: { local: { type: store } }\nwatches: { a: { source: local } }"); c.Policy != nil {
		t.Error("a configuration without roles and rules has a policy")
	}
}

// TestAccessErrors checks that each mistake is reported at its place, once.
func TestAccessErrors(t *testing.T) {
	const head = "sources: { local: { type: store } }\n"
	for name, c := range map[string]struct{ text, want string }{
		"no such role": {`roles: { staff: { when: "true" } }
watches: { a: { source: local, allow: [{ role: stafff, read: "true" }] } }`, `f:3:48: watches.a.allow[0].role: there is no role "stafff"; did you mean "staff"?`},
		"no roles": {`watches: { a: { source: local, allow: [{ role: staff, read: "true" }] } }`, `f:2:48: watches.a.allow[0].role: there is no role "staff"; the section roles has none`},
		"no role": {`roles: { staff: { when: "true" } }
watches: { a: { source: local, allow: [{ read: "true" }] } }`, `f:3:40: watches.a.allow[0]: role is missing; want text (in quotation marks if it looks like a number)`},
		"no when": {`roles: { staff: {} }`, `f:2:10: roles.staff: when is missing; want an expression in quotation marks`},
		"truth":   {`roles: { staff: { when: true } }`, `f:2:25: roles.staff.when: want an expression in quotation marks, not true or false`},
		"a wrong name": {`roles:
  staff: { when: '"x" in principal.grups' }`, `f:3:18: roles.staff.when: column 8: there is no principal.grups: did you mean "principal.groups"?`},
		"a wrong value": {`roles:
  staff: { when: "true", with: { tenant: principal.clams.tenant } }`, `f:3:42: roles.staff.with.tenant: column 1: there is no principal.clams: did you mean "principal.claims"?`},
		"a role twice": {`roles:
  staff: { when: "true" }
  staff: { when: "false" }`, `f:4:3: roles: "staff" is given twice, first on line 3`},
		"a wrong rule": {`roles: { staff: { when: "true", with: { tenant: "1" } } }
watches:
  a:
    source: local
    allow:
      - { role: staff, read: value.x == role.tenat }`, `f:7:30: watches.a.allow[0].read: column 12: there is no role.tenat: did you mean "role.tenant"?`},
		"a rule of nothing": {`roles: { staff: { when: "true" } }
watches: { a: { source: local, allow: [{ role: staff, fields: [a] }] } }`, `f:3:40: watches.a.allow[0]: the rule allows nothing; want read, write or delete`},
		"the old value where there is none": {`roles: { staff: { when: "true" } }
watches: { a: { source: local, allow: [{ role: staff, read: "old.x == 1" }] } }`, `f:3:61: watches.a.allow[0].read: column 1: there is no name "old" here`},
		"a wrong field": {`roles: { staff: { when: "true" } }
watches: { a: { source: local, allow: [{ role: staff, read: "true", fields: ["a..b"] }] } }`, `f:3:77: watches.a.allow[0].fields: column 3: a name is missing before .`},
		"a parameter of a template": {`roles: { staff: { when: "true" } }
watches: { "a-{x}": { source: local, params: { x: "[a-z]+" }, allow: [{ role: staff, read: 'value.x == {x}' }] } }`, `f:3:92: watches.a-{x}.allow[0].read: "value.x == {x}": a parameter cannot be used here`},
		"a secret":       {`roles: { staff: { when: 'principal.name == "${NAME}" && principal.x' } }`, `f:2:25: roles.staff.when: line 1, column 31 of the text is wrong; what ${NAME} stands for is not shown`},
		"no mapping":     {`roles: [staff]`, `f:2:8: roles: want a mapping, not a list`},
		"no list":        {`watches: { a: { source: local, allow: { role: staff } } }`, `f:2:39: watches.a.allow: want a list of rules, or kubernetes, which lets the cluster of the watch say who may read what, not a mapping`},
		"no name":        {`roles: { staff: { when: "true", with: { "a b": "1" } } }`, `f:2:48: roles.staff.with.a b: "a b" is no name for a value; want letters, digits and _, and no word of CEL`},
		"an unknown key": {`roles: { staff: { whn: "true" } }`, `f:2:19: unknown key "whn" in roles.staff; did you mean "when"?`},
	} {
		_, err := Parse("f", []byte(head+c.text+"\nauth: {}"), Environment{Getenv: func(string) (string, bool) { return "s3cret", true }})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
			continue
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error shows a variable: %v", name, err)
		}
		if lines := strings.Split(err.Error(), "\n"); len(lines) > 1 && name != "a rule of nothing" {
			t.Errorf("%s: it is reported as %q", name, lines)
		}
	}
}
