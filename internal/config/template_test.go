package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"github.com/watchtide/watchtide/internal/source/consul"
	"github.com/watchtide/watchtide/internal/source/kubernetes"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

const everyKeyOfTemplates = `
sources:
  local: { type: store }
  machine: { type: host }
  bus: { type: nats, url: "nats://bus:4222" }
  kv: { type: etcd, endpoints: ["etcd:2379"] }
  kube: { type: kubernetes }
  registry: { type: consul, address: "consul:8502" }
  core: { type: gateway, url: "http://core" }
  backend: { type: grpc, address: "backend:9000" }
watches:
  services: { source: local, labels_at: meta.tags }
  "orders-{region}": { source: bus, params: { region: "[a-z.]{2,8}" }, bucket: "orders-{region}", keys: "orders.{region}.>", max: 7, max_per_client: 6, linger: 10s }
  "settings-{app}-{stage}": { source: kv, params: { app: "[a-z.-]+", stage: "test|live" }, prefix: "/settings/{app}/$${HOST}{stage}-${HOST}/" }
  "team-{team}": { view_of: services, params: { team: "[A-Za-z0-9._-]+" }, filter: 'value.team == {team} && value.x != {"a": {team}}.a', labels: "team in ({team}, all)", prefix: "{team}/", fields: [team] }
  "pods.{ns}.{app}": { source: kube, params: { ns: "[a-z-]+", app: ".+" }, version: v1, resource: pods, namespace: "{ns}", label_selector: "app={app}", field_selector: "metadata.name!={app}" }
  "crd-{group}-{version}-{resource}": { source: kube, params: { group: "[a-z.]+", version: "v[0-9]", resource: "[a-z]+" }, group: "{group}", version: "{version}", resource: "{resource}" }
  "artists-{p}-{n}": { source: registry, params: { p: ".+", n: "[0-9.]+[0-9]?" }, resource_type: "demo.v{n}.Artist", tenancy: { partition: "{p}", namespace: "{p}" }, name_prefix: "{n}-" }
  "core-{x}": { source: core, params: { x: "[a-z]+" }, watch: "up.{x}", prefix: "{x}/" }
  "part-{x}": { source: core, params: { x: "[a-z]+" }, watch: "all", filter: "value.x == {x}", labels: "x={x}" }
  "same-{x}": { source: core, params: { x: "[a-z]+" } }
  "backend-{x}": { source: backend, params: { x: "[a-z]+" } }
  "notes-{user}": { source: local, params: { user: "[a-z]+" } }
  "top-{field}-{n}": { view_of: services, params: { field: "[a-z.-]+", n: "a|b" }, order: "-{field}, at.{n}", limit: 10 }
  "machine-{what}": { source: machine, params: { what: "processes|mounts" }, collection: "{what}" }
`

// TestTemplates checks what the watches of templates are.
func TestTemplates(t *testing.T) {
	c := parse(t, everyKeyOfTemplates)
	if len(c.Watches) != 1 || len(c.Templates) != 13 {
		t.Fatalf("%d watches, %d templates", len(c.Watches), len(c.Templates))
	}
	for name, want := range map[string]func(w *Watch){
		"orders-eu":         func(w *Watch) { w.Source, w.Bucket, w.Keys = "bus", "orders-eu", "orders.eu.>" },
		"orders-e.u":        nil, // "." separates tokens
		"orders-x":          nil,
		"orders-eu\n":       nil,
		"orders-":           nil,
		"xorders-eu":        nil,
		"orders-eu-x":       nil,
		"orders-EU":         nil,
		"other":             nil,
		"":                  nil,
		"orders-{region}":   nil,
		"settings-a-b-live": func(w *Watch) { w.Source, w.Prefix = "kv", "/settings/a-b/${HOST}live-127.0.0.1/" },
		"settings-..-test":  func(w *Watch) { w.Source, w.Prefix = "kv", "/settings/../${HOST}test-127.0.0.1/" },
		"settings-a-prod":   nil,
		"pods.web.x-1": func(w *Watch) {
			w.Source, w.LabelsAt = "kube", "metadata.labels"
			w.Kubernetes = kubernetes.Objects{Version: "v1", Resource: "pods", Namespace: "web", LabelSelector: "app=x-1", FieldSelector: "metadata.name!=x-1"}
		},
		"pods.-.x":    nil, // no namespace
		"pods.web.in": nil, // a word of selectors
		"pods.web.-x": nil, // no label
		"pods.web.x.y": func(w *Watch) {
			w.Source, w.LabelsAt = "kube", "metadata.labels"
			w.Kubernetes = kubernetes.Objects{Version: "v1", Resource: "pods", Namespace: "web", LabelSelector: "app=x.y", FieldSelector: "metadata.name!=x.y"}
		},
		"crd-a.b-v1-things": func(w *Watch) {
			w.Source, w.LabelsAt = "kube", "metadata.labels"
			w.Kubernetes = kubernetes.Objects{Group: "a.b", Version: "v1", Resource: "things"}
		},
		"crd-..-v1-things": nil,
		"artists-p-1": func(w *Watch) {
			w.Source, w.LabelsAt = "registry", "metadata"
			w.Consul = consul.Resources{Type: "demo.v1.Artist", Tenancy: consul.Tenancy{Partition: "p", Namespace: "p"}, NamePrefix: "1-"}
		},
		"artists-p-1.x":                   nil,
		"artists-P-1":                     nil,
		"core-x":                          func(w *Watch) { w.Source, w.Watch, w.Prefix = "core", "up.x", "x/" },
		"same-x":                          func(w *Watch) { w.Source, w.Watch = "core", "same-x" },
		"backend-x":                       func(w *Watch) { w.Source, w.Watch = "backend", "backend-x" },
		"notes-me":                        func(w *Watch) { w.Source = "local" },
		"machine-mounts":                  func(w *Watch) { w.Source, w.Collection = "machine", "mounts" },
		"machine-other":                   nil,
		"core-" + strings.Repeat("x", 60): nil,
	} {
		got, ok := lookUp(c, name)
		if ok != (want != nil) {
			t.Errorf("%q: got %+v, %v", name, got, ok)
			continue
		}
		if !ok {
			continue
		}
		expected := Watch{Name: name}
		if want(&expected); strings.HasPrefix(name, "orders") {
			expected.Linger = got.Linger
		}
		if want := name == "core-x"; (got.Definition != nil) != want || want && got.Definition.Params().Prefix != "x/" {
			t.Errorf("%q: got the definition %v", name, got.Definition)
		}
		got.Definition = nil
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("%q:\ngot  %+v\nwant %+v", name, got, expected)
		}
	}
	w, ok := lookUp(c, `team-A.b_c-1`)
	if !ok {
		t.Fatal("there is no such team")
	}
	if p := w.Definition.Params(); p.Prefix != "A.b_c-1/" || p.Labels != "team in (A.b_c-1,all)" || p.LabelsAt != "meta.tags" ||
		p.Filter != `value.team == "A.b_c-1" && value.x != {"a": "A.b_c-1"}.a` {
		t.Errorf("got %+v", p)
	}
	w, ok = lookUp(c, "top--x.y-b")
	if !ok || w.Definition.Params().Order != `-"-x.y",at.b` {
		t.Errorf("got %+v", w.Definition)
	}
	w, ok = lookUp(c, "part-b")
	if !ok || w.Watch != "all" || w.Definition.Params().Filter != `value.x == "b"` || w.Definition.Params().Labels != "x=b" {
		t.Errorf("got %+v", w)
	}
	if c.Templates[0].Max != 7 || c.Templates[0].MaxPerClient != 6 || c.Templates[1].Max != 0 || c.Templates[0].Sample().Keys != "orders.aa.>" {
		t.Errorf("got %+v", c.Templates[0])
	}
}

// lookUp returns the watch that the first template makes.
func lookUp(c *Config, name string) (Watch, bool) {
	for _, template := range c.Templates {
		if template.Match(name) {
			return template.Watch(name)
		}
	}
	return Watch{}, false
}

// TestTemplateErrors checks that each mistake is reported at its place, once.
func TestTemplateErrors(t *testing.T) {
	const sources = "sources: { local: { type: store }, bus: { type: nats, url: \"nats://bus:4222\" }, kv: { type: etcd, endpoints: [\"etcd:2379\"] }, disk: { type: files, dir: d } }\nwatches:\n  services: { source: local }\n"
	for name, c := range map[string]struct{ watches, want string }{
		"no params": {`{ source: bus, bucket: b, keys: "{x}" }`,
			`4:3: watches.a-{x}: params is missing; want a regular expression for each parameter of the name, such as params: { x: "[a-z]+" }`},
		"a param that is missing": {`{ source: bus, params: { y: a }, bucket: b, keys: "{x}" }`,
			"4:3: watches.a-{x}: params has no x, which is in the name; want a regular expression for it\n4:37: watches.a-{x}.params.y: the name has no {y}; did you mean \"x\"?"},
		"params that is no mapping":     {`{ source: local, params: [x] }`, `4:37: watches.a-{x}.params: want a mapping, not a list`},
		"an expression that is no text": {`{ source: local, params: { x: [a] } }`, `4:42: watches.a-{x}.params.x: want a regular expression, not a list`},
		"a bad expression": {`{ source: local, params: { x: "a(" } }`,
			`4:42: watches.a-{x}.params.x: "a(": missing closing ); want a regular expression (RE2), such as [a-z]+`},
		"a bad class": {`{ source: local, params: { x: "[z-a]+" } }`,
			`4:42: watches.a-{x}.params.x: "[z-a]+": invalid character class range at z-a; want a regular expression (RE2), such as [a-z]+`},
		"a bad expression of a variable": {`{ source: local, params: { x: "${SECRET}(" } }`,
			`4:42: watches.a-{x}.params.x: "${SECRET}(": want a regular expression (RE2), such as [a-z]+`},
		"anchors": {`{ source: local, params: { x: "^[a-z]+$" } }`,
			`4:42: watches.a-{x}.params.x: "^[a-z]+$": leave out ^, $ and \b; the whole value is matched anyway`},
		"no name matches": {`{ source: local, params: { x: "[/ ]+" } }`,
			`4:42: watches.a-{x}.params.x: "[/ ]+": it matches nothing that a name can have: want letters, digits, '.', '_' and '-'`},
		"only the empty value": {`{ source: local, params: { x: "()" } }`,
			`4:42: watches.a-{x}.params.x: "()": it matches nothing that a name can have: want letters, digits, '.', '_' and '-'`},
		"a name that is too long": {`{ source: local, params: { x: "[a-z]{63}" } }`,
			`4:3: "a-{x}": even with short values such as "a-` + strings.Repeat("a", 63) + `" the name has 65 bytes, of 64 at most`},
		"an unknown parameter": {`{ source: bus, params: { x: a }, bucket: b, keys: "{x}.{y}" }`, `4:62: watches.a-{x}.keys: the name has no {y}; did you mean "x"?`},
		"an unused parameter":  {`{ source: bus, params: { x: a }, bucket: b }`, `4:37: watches.a-{x}.params.x: no option uses {x}, so that every value would lead to the same watch; use it, or leave it out of the name`},
		"files":                {`{ source: disk, params: { x: a } }`, `4:38: watches.a-{x}.params.x: no option uses {x}, so that every value would lead to the same watch; use it, or leave it out of the name`},
		"primed":               {`{ source: local, params: { x: a }, prime: true }`, `4:47: watches.a-{x}.prime: a template cannot be primed: the values of its parameters are not known at start`},
		"required":             {`{ source: local, params: { x: a }, required: true }`, `4:47: watches.a-{x}.required: a template cannot be required: its watches are started by their subscribers`},
		"max of 0":             {`{ source: local, params: { x: a }, max: 0 }`, `4:52: watches.a-{x}.max: "0": want a whole number of at least 1`},
		"max below 0":          {`{ source: local, params: { x: a }, max: -1 }`, `4:52: watches.a-{x}.max: "-1": want a whole number of at least 1`},
		"max that is large":    {`{ source: local, params: { x: a }, max: 10001 }`, `4:52: watches.a-{x}.max: want at most 10000`},
		"a share of 0":         {`{ source: local, params: { x: a }, max_per_client: 0 }`, `4:63: watches.a-{x}.max_per_client: "0": want a whole number of at least 1`},
		"a share above max":    {`{ source: local, params: { x: a }, max: 3, max_per_client: 4 }`, `4:71: watches.a-{x}.max_per_client: want at most max, which is 3`},
		"a share above 100":    {`{ source: local, params: { x: a }, max_per_client: 101 }`, `4:63: watches.a-{x}.max_per_client: want at most max, which is 100`},
		"the source":           {`{ source: "{x}", params: { x: a } }`, `4:22: watches.a-{x}.source: "{x}": a parameter cannot be used here`},
		"labels_at":            {`{ source: kv, params: { x: a }, prefix: "{x}/", labels_at: "{x}" }`, `4:71: watches.a-{x}.labels_at: "{x}": a parameter cannot be used here`},
		"fields":               {`{ view_of: services, params: { x: a }, prefix: "{x}/", fields: ["{x}"] }`, `4:76: watches.a-{x}.fields[0]: "{x}": a parameter cannot be used here`},
		"a number":             {`{ source: local, params: { x: a }, memory: "{x}" }`, `4:55: watches.a-{x}.memory: "{x}": want a number of bytes of at least 1MiB, such as 512MiB or 2GiB`},
		"a prefix without an end": {`{ source: kv, params: { x: a }, prefix: "b/{x}" }`,
			`4:52: watches.a-{x}.prefix: "b/{x}": the prefix ends with {x}, so that one value would select what belongs to longer ones; end it with a separator, as in {x}/`},
		"a wrong option": {`{ source: bus, params: { x: a }, bucket: b, keys: "{x}..>" }`,
			`4:62: watches.a-{x}.keys: "{x}..>": want tokens between dots, where "*" is any token and a last ">" is any rest, such as "eu.*.price" or "eu.>"`},
		"no valid value": {`{ source: bus, params: { x: "[.]" }, bucket: b, keys: "{x}" }`,
			`4:66: watches.a-{x}.keys: "{x}": a value such as "." cannot be used here; want tokens between dots, where "*" is any token and a last ">" is any rest, such as "eu.*.price" or "eu.>"`},
		"quotation marks": {`{ view_of: services, params: { x: a }, filter: 'value.x == "{x}"' }`,
			`4:59: watches.a-{x}.filter: a parameter in a filter is a string; write it without quotation marks around it, as in value.team == {x}`},
		"other quotation marks": {`{ view_of: services, params: { x: a }, filter: "value.x == '{x}'" }`,
			`4:59: watches.a-{x}.filter: a parameter in a filter is a string; write it without quotation marks around it, as in value.team == {x}`},
		"a text around it": {`{ view_of: services, params: { x: a }, filter: "value.x == '''a {x} b'''" }`,
			`4:59: watches.a-{x}.filter: a parameter in a filter is a string; write it without quotation marks around it, as in value.team == {x}`},
		"a raw string": {`{ view_of: services, params: { x: a }, filter: "value.x == r{x}" }`,
			`4:59: watches.a-{x}.filter: a parameter in a filter is a string; write it without quotation marks around it, as in value.team == {x}`},
		"quotation marks in an order": {`{ view_of: services, params: { x: a }, limit: 1, order: '-"{x}"' }`,
			`4:68: watches.a-{x}.order: a parameter in an order is a whole name; write it without quotation marks around it, as in -{x}`},
		"a part of a name in an order": {`{ view_of: services, params: { x: a }, limit: 1, order: "n{x}" }`,
			`4:68: watches.a-{x}.order: a parameter in an order is a whole name; write it without quotation marks around it, as in -{x}`},
		"two parameters as a name in an order": {`{ view_of: services, params: { x: a }, limit: 1, order: "{x}{x}" }`,
			`4:68: watches.a-{x}.order: a parameter in an order is a whole name; write it without quotation marks around it, as in -{x}`},
		"a limit": {`{ view_of: services, params: { x: a }, limit: "{x}", order: "n,{x}" }`,
			`4:58: watches.a-{x}.limit: "{x}": want a whole number`},
		"a wrong filter": {`{ view_of: services, params: { x: a }, filter: "value.x = {x}" }`, `4:59: watches.a-{x}.filter: column 9: `},
		"a view of nothing": {`{ view_of: "b-{x}", params: { x: "[a-z]+" }, prefix: "{x}/" }`,
			`4:23: watches.a-{x}.view_of: there is no watch "b-a", of which "a-a" would be a view; there are a-{x}, services`},
		"a view of itself": {`{ view_of: "a-{x}", params: { x: a }, prefix: "{x}/" }`,
			`4:23: watches.a-{x}.view_of: a view of itself: a-{x} (line 4) is of a-{x} (line 4)`},
		"a view of longer and longer names": {`{ view_of: "a-b{x}", params: { x: "[a-z]+" }, prefix: "{x}/" }`,
			`4:23: watches.a-{x}.view_of: a view of itself: a-{x} (line 4) is of a-{x} (line 4)`},
		"an unknown parameter in the watch of a view": {`{ view_of: "b-{y}", params: { x: a }, prefix: "{x}/" }`,
			`4:23: watches.a-{x}.view_of: the name has no {y}; did you mean "x"?`},
	} {
		t.Run(name, func(t *testing.T) {
			expectErrors(t, sources+`  "a-{x}": `+c.watches, c.want)
		})
	}
	for name, c := range map[string]struct{ entry, want string }{
		"no closing brace":  {`"a-{x": { source: local }`, `4:3: "a-{x": want parameters such as {region}, of lower-case letters, digits and '_'`},
		"no opening brace":  {`"a-x}": { source: local }`, `4:3: "a-x}": want letters, digits, '.', '_' and '-', and parameters such as {region}`},
		"no name":           {`"a-{}": { source: local }`, `4:3: "a-{}": want parameters such as {region}, of lower-case letters, digits and '_'`},
		"twice":             {`"a-{x}-{x}": { source: local }`, `4:3: "a-{x}-{x}": {x} is there twice`},
		"adjacent":          {`"a-{x}{y}": { source: local }`, `4:3: "a-{x}{y}": nothing separates {x} from {y}; put a character such as '-' between them`},
		"characters":        {`"a/{x}": { source: local }`, `4:3: "a/{x}": want letters, digits, '.', '_' and '-', and parameters such as {region}`},
		"params of a watch": {`a: { source: local, params: { x: a } }`, `4:23: watches.a.params: params are those of the name, which has none; write them as in orders-{region}`},
		"max of a watch":    {`a: { source: local, max: 3 }`, `4:23: watches.a.max: max is for templates, whose names have parameters, such as orders-{region}`},
		"max of a view":     {`a: { view_of: services, prefix: a, max: 3 }`, `4:38: watches.a.max: max is for templates, whose names have parameters, such as orders-{region}`},
		"share of a watch":  {`a: { source: local, max_per_client: 3 }`, `4:23: watches.a.max_per_client: max_per_client is for templates, whose names have parameters, such as orders-{region}`},
		"a view of a template": {"\"a-{x}\": { source: local, params: { x: a } }\n  b: { view_of: \"a-{x}\", prefix: b }",
			`5:17: watches.b.view_of: "a-{x}": want a name of 1 to 64 letters, digits, '.', '_' or '-'`},
		"a view of a watch that no template makes": {"\"a-{x}\": { source: local, params: { x: a } }\n  b: { view_of: a-b, prefix: b }",
			`5:17: watches.b.view_of: there is no watch "a-b"; there are a-{x}, b, services`},
		"a circle through a template": {"\"a-{x}\": { view_of: c, params: { x: a }, prefix: \"{x}/\" }\n  c: { view_of: a-a, prefix: b }",
			`4:23: watches.a-{x}.view_of: a view of itself: a-{x} (line 4) is of c (line 5) is of a-{x} (line 4)`},
		"a circle of templates": {"\"b-{x}\": { view_of: \"a-{x}\", params: { x: a }, prefix: \"{x}/\" }\n  \"a-{y}\": { view_of: \"b-{y}\", params: { y: a }, prefix: \"{y}/\" }",
			`5:23: watches.a-{y}.view_of: a view of itself: a-{y} (line 5) is of b-{x} (line 4) is of a-{y} (line 5)`},
		"a circle that only one value leads to": {"\"a-{x}\": { view_of: \"{x}\", params: { x: \"services|own-circle\" }, filter: \"true\" }\n  own-circle: { view_of: a-own-circle, prefix: b }",
			`4:23: watches.a-{x}.view_of: a view of itself: a-{x} (line 4) is of own-circle (line 5) is of a-{x} (line 4)`},
		"a chain that breaks for only one value": {"\"a-{x}\": { view_of: \"{x}\", params: { x: \"services|elsewhere\" }, filter: \"key != {x}\" }\n  d: { view_of: a-elsewhere, prefix: b }",
			`5:17: watches.d.view_of: there is no watch "elsewhere", of which "a-elsewhere" is a view; there are a-{x}, d, services`},
		"a view of a template with a mistake": {"\"a-{x}\": { source: local, params: { x: \"(\" } }\n  b: { view_of: a-a, prefix: b }",
			`4:42: watches.a-{x}.params.x: "(": missing closing ); want a regular expression (RE2), such as [a-z]+`},
	} {
		t.Run(name, func(t *testing.T) { expectErrors(t, sources+"  "+c.entry, c.want) })
	}
	expectErrors(t, `sources: { "s-{x}": { type: store } }`, `1:12: "s-{x}": want a name of 1 to 64 letters, digits, '.', '_' or '-'`)
}

// TestViewsOfTemplates checks of what views are that lead through templates, and where the
// labels are.
func TestViewsOfTemplates(t *testing.T) {
	c := parse(t, `
sources: { local: { type: store }, bus: { type: nats, url: "nats://bus:4222" }, kube: { type: kubernetes } }
watches:
  eu-red: { view_of: failing-eu, labels: team=red }
  "failing-{region}": { view_of: "orders-{region}", params: { region: "[a-z]+" }, filter: "value.failed" }
  "red-{what}": { view_of: "{what}", params: { what: "[a-z-]+" }, labels: team=red }
  "orders-{region}": { source: bus, params: { region: "[a-z]{1,3}" }, bucket: "orders-{region}" }
  orders-us: { source: local, labels_at: tags }
  pods: { source: kube, version: v1, resource: pods }
  pods-red: { view_of: red-pods, prefix: a }
  a: { source: local }
`)
	for name, want := range map[string]struct{ of, labelsAt string }{
		"eu-red":         {"failing-eu", "labels"},
		"failing-eu":     {"orders-eu", "labels"},
		"failing-us":     {"orders-us", "tags"}, // which no template makes
		"failing-asia":   {},                    // the other template has no such watch
		"red-pods":       {"pods", "metadata.labels"},
		"red-orders-eu":  {"orders-eu", "labels"},
		"red-failing-us": {"failing-us", "tags"},
		"red-failing-xx": {"failing-xx", "labels"},
		"red-red-pods":   {}, // one template twice
		"red-nothing":    {},
		"pods-red":       {"red-pods", "metadata.labels"},
		"red-pods-red":   {},
	} {
		w, ok := lookUp(c, name)
		if i := slices.IndexFunc(c.Watches, func(w Watch) bool { return w.Name == name }); i >= 0 {
			w, ok = c.Watches[i], true
		}
		if ok != (want.of != "") || ok && (w.ViewOf != want.of || cmp.Or(w.LabelsAt, "labels") != want.labelsAt || w.Definition == nil) {
			t.Errorf("%s: %v: a view of %q, labels at %q, definition %v", name, ok, w.ViewOf, w.LabelsAt, w.Definition)
			continue
		}
		if !ok {
			continue
		}
		if p := w.Definition.Params(); p.Labels != "" && cmp.Or(p.LabelsAt, "labels") != want.labelsAt {
			t.Errorf("%s selects %+v", name, p)
		}
	}
}

func expectErrors(t *testing.T, text, want string) {
	t.Helper()
	_, err := Parse("f", []byte(text), fakeEnvironment())
	if err == nil {
		t.Fatal("no error")
	}
	got := strings.ReplaceAll("\n"+err.Error(), "\nf:", "\n")[1:]
	if !strings.HasPrefix(got, want) || strings.Count(got, "\n") != strings.Count(want, "\n") || strings.Contains(got, "hunter2") {
		t.Errorf("got\n%v\nwant\n%s", got, want)
	}
}

// hostile are values that no name can have, and some that it can. Whatever an escape makes
// of them must stand for itself.
var hostile = []string{
	"", ".", "..", "../..", "/", "//", "a/b", "%2F", "%2e%2e", "*", "**", ">", "a.>", "a.*", "eu.west", " ", "a b", "\t", "\n", "\r\n", "\x00", "a\x00b",
	`"`, `'`, "`", `\`, `\"`, `\'`, `"""`, `'''`, `" || true || "`, `' || true || '`, `\" || true //`, `a" || "a" == "a`,
	",", "=", "!=", "==", "!", "(", ")", "a,b", "a=b", "a in (b)", "in", "notin", "IN", "a)", "a),b in (c", "{", "}", "{x}", "${HOST}", "$${", "$",
	"é", "ａ", "．", "／", "＊", "\u2028", "\u202e", "\ufeff", "\ufffd", "\xff", "\xc0\xaf", "𝒶", "\u0000", "\u007f", "\u0085",
	"-", "_", "a", "A", "0", "default", "v1", "a-b", "-a", "a-", "a.", "a..b", "true", "null", "//", "r", strings.Repeat("a", 40), strings.Repeat("\"", 64),
}

// TestHostileValues checks each rule on each of them, with the parsers that read the texts.
func TestHostileValues(t *testing.T) {
	for kind := range texts {
		t.Run(kind, func(t *testing.T) {
			for _, value := range hostile {
				checkValue(t, kind, value)
			}
		})
	}
}

// FuzzValue looks for values that do not stand for themselves.
func FuzzValue(f *testing.F) {
	for _, value := range hostile {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if len(value) > 40 {
			return
		}
		for kind := range texts {
			checkValue(t, kind, value)
		}
	})
}

// checkValue checks the rule of a kind of text, if it has one.
func checkValue(t *testing.T, kind, value string) {
	t.Helper()
	plain, isPlain := allowed[kind]
	switch rule := texts[kind].Parameter; {
	case rule == nil:
	case kind == "filter":
		checkFilter(t, value)
	case kind == "order":
		checkOrder(t, value)
	case kind == "labels" || kind == "label selector":
		checkLabels(t, kind, value)
	case kind == "field selector":
		checkFields(t, value)
	case kind == "nats keys":
		checkKeys(t, value)
	case isPlain:
		checkPlain(t, kind, plain, value)
	default:
		t.Errorf("nothing checks the rule of %q", kind)
	}
}

// FuzzExpression compares the expressions of parameters with those that were written.
func FuzzExpression(f *testing.F) {
	for _, expression := range []string{"[a-z]{2,8}", "a|b", "(?i)x(?P<n>y)*", "(?:)", "a**", "(a|)(b|c)?", "[^a]", ".", "(?s).", "\\pL", "\\d{3}-x", "a$", "(((", "(?i:[k-m])", "x{1000}", "(a+)+", "[^\\x00-\\x{10FFFF}]", "\\Qa.b\\E"} {
		f.Add(expression, "ab")
	}
	f.Fuzz(func(t *testing.T, written, name string) {
		text, err := json.Marshal(written)
		if err != nil || !utf8.ValidString(written) || strings.Contains(written, "$") {
			return
		}
		c, err := Parse("f", []byte(`{ sources: { s: { type: store } }, watches: { "a-{x}-b": { source: s, params: { x: `+string(text)+` } }}}`), fakeEnvironment())
		if err != nil {
			return
		}
		original, err := regexp.Compile(`\A(?:` + written + `)\z`)
		if err != nil {
			t.Fatalf("%q was accepted: %v", written, err)
		}
		one := c.Templates[0]
		if got, want := one.Match("a-"+name+"-b"), original.MatchString(name) && stream.CheckWatchName("a-"+name+"-b") == nil; got != want {
			t.Errorf("%q: %q: got %v", written, name, got)
		}
		if sample := one.Sample().Name; !one.Match(sample) || stream.CheckWatchName(sample) != nil {
			t.Errorf("%q: the sample %q is none", written, sample)
		}
	})
}

// filled returns a text with a value of a parameter between two others.
func filled(kind, before, value, after string) (string, bool) {
	k := texts[kind]
	text, ok := k.Parameter.Fill(decode.TemplateText{{Literal: before}, {Param: "x"}, {Literal: after}}, map[string]string{"x": value})
	return text, ok && k.Allows(text)
}

// checkFilter compares with a filter that only one value matches.
func checkFilter(t *testing.T, value string) {
	text, ok := filled("filter", "value.team == ", value, " && revision > 1u")
	if !ok {
		if value != "" && strings.ToValidUTF8(value, "") == value {
			t.Errorf("%q is refused", value)
		}
		return
	}
	d, err := view.Parse(view.Params{Filter: text})
	if err != nil {
		t.Errorf("%q: %s: %v", value, text, err)
		return
	}
	for _, other := range []string{"x", "true", "", "*", "a", value + "x", strings.ToUpper(value), text} {
		if other != value && strings.ToValidUTF8(other, "") == other && matches(t, d, other) {
			t.Errorf("%q: %s selects %q", value, text, other)
		}
	}
	if !matches(t, d, value) {
		t.Errorf("%q: %s does not select it", value, text)
	}
}

func matches(t *testing.T, d *view.Definition, team string) bool {
	t.Helper()
	value, err := json.Marshal(map[string]string{"team": team})
	if err != nil {
		t.Fatal(err)
	}
	found, err := d.Matches(stream.Resource{Key: "k", Revision: 2, Value: value})
	if err != nil {
		t.Errorf("%q: %v", team, err)
	}
	return found
}

// allowed are the values that stand as they are in a kind of text; no others are valid.
var allowed = map[string]*regexp.Regexp{
	"nats bucket":        regexp.MustCompile(`\A[A-Za-z0-9_-]+\z`),
	"consul prefix":      regexp.MustCompile(`\A[a-z0-9-]+\z`),
	"consul service":     regexp.MustCompile(`\A[A-Za-z0-9_.-]+\z`),
	"consul tenancy":     regexp.MustCompile(`\A[a-z0-9-]+\z`),
	"consul type":        regexp.MustCompile(`\A[A-Za-z0-9]+\z`),
	"kubernetes group":   regexp.MustCompile(`\A[a-z0-9.-]+\z`),
	"kubernetes version": regexp.MustCompile(`\A[a-z0-9.-]+\z`),
	"kubernetes plural":  regexp.MustCompile(`\A[a-z0-9.-]+\z`),
	"namespace":          regexp.MustCompile(`\A[a-z0-9.-]+\z`),
	"postgres table":     regexp.MustCompile(`\A[a-z0-9_]+\z`),
	"prefix":             regexp.MustCompile(`(?s)\A.+\z`),
	"watch":              regexp.MustCompile(`\A[A-Za-z0-9._-]+\z`),
	"collection":         regexp.MustCompile(`\A(?:processes|mounts|interfaces)\z`),
}

// around has texts that are valid with a value between them.
var around = map[string][2]string{
	"nats bucket": {"x", "x"}, "consul prefix": {"x", "x"}, "consul service": {"x", "x"}, "consul tenancy": {"x", "x"}, "consul type": {"demo.v1.A", "x"},
	"kubernetes group": {"x", "x"}, "kubernetes version": {"x", "x"}, "kubernetes plural": {"x", "x"}, "namespace": {"x", "x"},
	"postgres table": {"x", "x"}, "prefix": {"", "/"}, "watch": {"x", "x"}, "collection": {"", ""},
}

// checkPlain checks that values stand as they are, and that only the allowed ones do.
func checkPlain(t *testing.T, kind string, allowed *regexp.Regexp, value string) {
	got, ok := filled(kind, around[kind][0], value, around[kind][1])
	if ok && got != around[kind][0]+value+around[kind][1] {
		t.Errorf("%q: got %q", value, got)
	}
	if want := utf8.ValidString(value) && allowed.MatchString(value); ok != want {
		t.Errorf("%q: got %v", value, ok)
	}
}

// checkOrder checks that resources are sorted by the member that has the value as its name, and by no other.
func checkOrder(t *testing.T, value string) {
	text, ok := filled("order", "-", value, ",at")
	if want := value != "" && utf8.ValidString(value); ok != want {
		t.Errorf("%q: got %v", value, ok)
	}
	if !ok || len(value) > 500 {
		return
	}
	d, err := view.Parse(view.Params{Order: text, Limit: "1"})
	if err != nil {
		t.Errorf("%q: %s: %v", value, text, err)
		return
	}
	sortKey := func(name string, n int) []byte {
		value, err := json.Marshal(map[string]int{name: n})
		if err != nil {
			t.Fatal(err)
		}
		return d.AppendSortKey(nil, stream.Resource{Key: "k", Value: value})
	}
	if bytes.Compare(sortKey(value, 2), sortKey(value, 1)) >= 0 {
		t.Errorf("%q: %s does not sort by it", value, text)
	}
	for _, other := range []string{"x", "", "-", value + "x", "at" + value, text} {
		if other != value && !bytes.Equal(sortKey(other, 2), sortKey(other, 1)) && other != "at" {
			t.Errorf("%q: %s sorts by %q", value, text, other)
		}
	}
}

// checkLabels compares with the requirement that is meant.
func checkLabels(t *testing.T, kind, value string) {
	text, ok := filled(kind, "a=b,team in (x,", value, ")")
	if !ok {
		return
	}
	r, err := labels.ParseToRequirements(text)
	if err != nil || len(r) != 2 {
		t.Fatalf("%q: %q: %v, %v", value, text, r, err)
	}
	slices.SortFunc(r, func(a, b labels.Requirement) int { return strings.Compare(a.Key(), b.Key()) })
	if r[1].Key() != "team" || r[1].Operator() != "in" || len(r[1].ValuesUnsorted()) > 2 {
		t.Errorf("%q: %q: %v", value, text, r)
	}
	if !r[1].Matches(labels.Set{"team": value}) || r[1].Matches(labels.Set{"team": "n" + value}) {
		t.Errorf("%q: %q selects something else", value, text)
	}
}

// checkFields compares with the requirement that is meant.
func checkFields(t *testing.T, value string) {
	text, ok := filled("field selector", "spec.a=b,metadata.name=", value, "")
	if !ok {
		return
	}
	s, err := fields.ParseSelector(text)
	if err != nil {
		t.Fatalf("%q: %q: %v", value, text, err)
	}
	got, exact := s.RequiresExactMatch("metadata.name")
	if other, _ := s.RequiresExactMatch("spec.a"); !exact || got != value || other != "b" || len(s.Requirements()) != 2 {
		t.Errorf("%q: %q: %v", value, text, s)
	}
}

// checkKeys checks that a value is one token.
func checkKeys(t *testing.T, value string) {
	text, ok := filled("nats keys", "orders.", value, ".>")
	if !ok {
		return
	}
	tokens := strings.Split(text, ".")
	if len(tokens) != 3 || tokens[1] != value || strings.ContainsAny(value, "*>") || strings.TrimSpace(value) != value {
		t.Errorf("%q: got %q", value, text)
	}
}
