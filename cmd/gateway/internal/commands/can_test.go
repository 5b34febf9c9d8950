package commands

import (
	"strings"
	"testing"
)

const withRules = `
auth: {}
sources: { local: { type: store } }
roles:
  anyone: { when: "true" }
  staff:  { when: '"staff" in principal.groups' }
  tenant: { when: has(principal.claims.tenant), with: { tenant: principal.claims.tenant } }
watches:
  orders:
    source: local
    allow:
      - { role: staff, read: "true", write: "true" }
      - { role: tenant, read: value.tenant == role.tenant, fields: [status, eta] }
      - { role: anyone, read: value.owner == principal.name, write: new.owner == principal.name, delete: "true" }
  accounts:
    source: local
    allow:
      - { role: anyone, read: "true", except: [secret, card.number] }
      - { role: tenant, read: value.tenant == role.tenant, fields: [card], except: [card.cvc] }
      - { role: staff, read: value.open }
  closed: { source: local }
  "of-{region}": { source: local, params: { region: "[a-z]+" }, allow: [{ role: staff, read: "true" }] }
`

// TestConfigCan: every line says what the rules make of who asks.
func TestConfigCan(t *testing.T) {
	configuration := file(t, "gateway.yaml", withRules)
	bob := file(t, "bob.json", `{"name":"bob","claims":{"tenant":"acme","level":9007199254740993}}`)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a watch": {[]string{"--as", bob, "orders"}, `roles:
  anyone: held
  staff: not held: when is false
  tenant: held, with tenant = "acme"
watch orders: visible
  rule 1, for staff: does not apply, since the role is not held
  rule 2, for tenant: reads value.tenant == "acme", of it only status, eta
  rule 3, for anyone: reads value.owner == "bob"; can allow writes; can allow deletes
`},
		"a resource that is seen in part": {[]string{"--as", bob, "orders", "o-1", "--value", file(t, "value.json", `{"tenant":"acme","owner":"x"}`)}, `
resource o-1:
  read: some fields, by rule 2
  write: refused with 403: only a part of the resource may be read
  delete: refused with 403: only a part of the resource may be read
`},
		"one's own": {[]string{"--as", bob, "orders", "o-1", "--value", file(t, "value.json", `{"owner": "bob"}`)}, `
resource o-1:
  read: all of it, by rule 3
  write: allowed by rule 3, for anyone
  delete: allowed by rule 3, for anyone
`},
		"a hidden one": {[]string{"--as", bob, "orders", "o-1", "--value", file(t, "value.json", `{"owner": "eve"}`)}, `
resource o-1:
  read: nothing: no rule lets it be seen
  write: refused with 403: no rule allows it
  delete: refused with 404: the resource may not be read
`},
		"what is left out": {[]string{"--as", bob, "accounts"}, `watch accounts: visible
  rule 1, for anyone: reads true, of it all but secret, card.number
  rule 2, for tenant: reads value.tenant == "acme", of it only card without card.cvc
  rule 3, for staff: does not apply, since the role is not held
  warning: rule 1 leaves out card.number, but rule 2 shows it of the resources that both let be read
  warning: rule 2 leaves out card.cvc, but rule 1 shows it of the resources that both let be read
`},
		"what is left out of a resource": {[]string{"--as", bob, "accounts", "a-1", "--value", file(t, "value.json", `{"tenant":"acme"}`)}, `
  warning: rule 1 leaves out card.number, but rule 2 shows it of this resource
  warning: rule 2 leaves out card.cvc, but rule 1 shows it of this resource
resource a-1:
  read: some fields, by rule 1, rule 2
`},
		"what is left out of another one": {[]string{"--as", bob, "accounts", "a-1", "--value", file(t, "value.json", `{"tenant":"x"}`)}, `
  rule 3, for staff: does not apply, since the role is not held
resource a-1:
  read: some fields, by rule 1
  write: refused with 403: no rule allows it
`},
		"no rules":              {[]string{"--as", bob, "closed"}, "watch closed: for nobody, since it has no rules\n"},
		"no rule applies":       {[]string{"--as", bob, "of-eu"}, "watch of-eu: hidden, since no rule applies\n  rule 1, for staff: does not apply"},
		"a watch of a template": {[]string{"--as", file(t, "ann.json", `{"groups":["staff"]}`), "of-eu"}, "watch of-eu: visible\n  rule 1, for staff: reads true\n"},
		"nobody in particular":  {[]string{"orders"}, `rule 3, for anyone: reads nothing: read has no result`},
	} {
		code, stdout, stderr := command(t, append([]string{"config", "can", "--config", configuration}, c.args...)...)
		if code != 0 || !strings.Contains(stdout, c.want) {
			t.Errorf("%s: exit code %d:\n%s%s\nwant\n%s", name, code, stdout, stderr, c.want)
		}
	}
}

// TestConfigCanOfACluster: it is the cluster that knows.
func TestConfigCanOfACluster(t *testing.T) {
	configuration := file(t, "gateway.yaml", `
auth: { kubernetes: { source: prod, audiences: [watchtide] } }
sources: { prod: { type: kubernetes, kubeconfig: c } }
watches:
  pods: { source: prod, version: v1, resource: pods, allow: kubernetes }
  jobs: { source: prod, group: batch, version: v1, resource: jobs, namespace: shop, allow: kubernetes }
`)
	for watch, want := range map[string]string{
		"pods": "watch pods: as the cluster says: who may both list and watch pods reads it; ask kubectl auth can-i list pods and kubectl auth can-i watch pods, in each namespace, or with -A in all\n",
		"jobs": "who may both list and watch jobs.batch reads it; ask kubectl auth can-i list jobs.batch and kubectl auth can-i watch jobs.batch, in the namespace shop\n",
	} {
		code, stdout, stderr := command(t, "config", "can", "--config", configuration, watch)
		if code != 0 || !strings.HasSuffix(stdout, want) {
			t.Errorf("%s: exit code %d:\n%s%s\nwant\n%s", watch, code, stdout, stderr, want)
		}
	}
}

// TestConfigCheckWarnsOfCounts: of those, and of windows, that tell more than some may see of what is counted or sorted.
func TestConfigCheckWarnsOfCounts(t *testing.T) {
	const (
		counted = "warning: watches.states: all of red is counted, and no rule of red or notes lets the role all read all of it\n"
		sorted  = "warning: watches.top: all of red is sorted, and no rule of red or notes lets the role all read all of it\n"
		ofTeams = "warning: watches.states-{team}: all of notes-{team} is counted, and no rule of notes-{team} lets the role staff read all of it\n"
	)
	for _, c := range []struct{ name, notes, red, teams, want string }{
		{"all of it", `{ role: all, read: "true" }`, "", `{ role: staff, read: "true" }`, ""},
		{"a part", `{ role: all, read: 'value.n == 1' }`, "", `{ role: staff, read: 'value.n == 1' }`, counted + sorted + ofTeams},
		{"some fields", `{ role: all, read: "true", fields: [n] }`, "", `{ role: all, read: "true", except: [n] }`, counted + sorted + ofTeams},
		{"all of the view", `{ role: all, read: 'value.n == 1' }`, `{ role: all, read: "true" }`, `{ role: all, read: "true" }`, ""},
		{"two rules", `{ role: all, read: 'value.n == 1' }, { role: all, read: "true" }`, "", `{ role: staff, read: 'value.n == 1' }, { role: all, read: "true" }`, ""},
		{"nothing", "", "", "", counted + sorted + ofTeams},
		{"only writes", `{ role: all, write: "true" }`, "", `{ role: staff, delete: "true" }`, counted + sorted + ofTeams},
		{"another role", `{ role: staff, read: "true" }`, "", `{ role: guests, read: "true" }`, counted + sorted + ofTeams},
	} {
		configuration := file(t, "gateway.yaml", `
auth: {}
roles: { all: { when: "true" }, staff: { when: 'principal.name == "ann"' }, guests: { when: 'principal.name == "bob"' } }
sources: { local: { type: store } }
watches:
  notes: { source: local, allow: [`+c.notes+`] }
  red: { view_of: notes, prefix: red/, allow: [`+c.red+`] }
  states: { view_of: red, by: [state], allow: [{ role: all, read: "true" }] }
  top: { view_of: red, order: -n, limit: 5, allow: [{ role: all, read: "true" }] }
  "notes-{team}": { source: local, params: { team: "[a-z]+" }, max: 10, allow: [`+c.teams+`] }
  "states-{team}": { view_of: "notes-{team}", params: { team: "[a-z]+" }, max: 10, by: [state], allow: [{ role: staff, read: 'value.count > 1' }, { role: guests, write: "true" }] }
`)
		code, stdout, stderr := command(t, "config", "check", configuration)
		if _, warnings, _ := strings.Cut(stdout, "\n"); code != 0 || warnings != c.want {
			t.Errorf("%s: exit code %d:\n%s%s\nwant\n%s", c.name, code, stdout, stderr, c.want)
		}
	}
}

// TestConfigCheckWarnsOfWhatIsNotLeftOut: of what another rule shows to all who hold the role.
func TestConfigCheckWarnsOfWhatIsNotLeftOut(t *testing.T) {
	configuration := file(t, "gateway.yaml", withRules)
	code, stdout, stderr := command(t, "config", "check", configuration)
	if want := "warning: watches.accounts.allow: rule 2 leaves out card.cvc, but rule 1 shows it to everybody who holds its role\n"; code != 0 || strings.Count(stdout, "\n") != 2 || !strings.HasSuffix(stdout, want) {
		t.Errorf("exit code %d:\n%s%s\nwant\n%s", code, stdout, stderr, want)
	}
}

func TestConfigCanRefuses(t *testing.T) {
	configuration := file(t, "gateway.yaml", withRules)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no configuration":      {[]string{"orders"}, 2, "want --config FILE"},
		"no watch":              {[]string{"--config", configuration}, 2, "arg(s)"},
		"a key alone":           {[]string{"--config", configuration, "orders", "k"}, 2, "want KEY and --value FILE together"},
		"a value alone":         {[]string{"--config", configuration, "orders", "--value", "x"}, 2, "want KEY and --value FILE together"},
		"no such watch":         {[]string{"--config", configuration, "ordrs"}, 1, `there is no watch "ordrs"; did you mean "orders"?`},
		"no such file":          {[]string{"--config", configuration, "orders", "--as", "/does/not/exist"}, 1, "no such file"},
		"claims alone":          {[]string{"--config", configuration, "orders", "--as", file(t, "a.json", `{"sub":"ann"}`)}, 1, `unknown field "sub"; want an object with name,`},
		"two objects":           {[]string{"--config", configuration, "orders", "--as", file(t, "a.json", `{} {}`)}, 1, "there is more after the object"},
		"a value that is none":  {[]string{"--config", configuration, "orders", "k", "--value", file(t, "a.json", `{`)}, 1, "the value is no JSON"},
		"no rules":              {[]string{"--config", file(t, "b.yaml", "sources: { s: { type: store } }\nwatches: { a: { source: s } }"), "a"}, 1, "there are no roles and no rules of access"},
		"a mistake in the file": {[]string{"--config", file(t, "b.yaml", "roles: { a: { when: 'x' } }\nauth: {}"), "a"}, 1, `b.yaml:1:21: roles.a.when: column 1: there is no name "x" here`},
	} {
		code, stdout, stderr := command(t, append([]string{"config", "can"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%s: exit code %d, want %d:\n%s%s\nwant %s", name, code, c.code, stdout, stderr, c.want)
		}
	}
}
