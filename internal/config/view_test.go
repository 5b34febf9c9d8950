package config

import (
	"strings"
	"testing"
)

const viewSources = `
sources:
  local: { type: store }
  kube: { type: kubernetes }
`

// TestViews checks what views select, and where the labels of what they select are.
func TestViews(t *testing.T) {
	c, err := Parse("f", []byte(viewSources+`
watches:
  failing: { view_of: services, filter: 'value.state != "passing"', fields: [state, node], prefix: a/, prime: false }
  red: { view_of: failing, labels: team=red }
  services: { source: local, labels_at: meta.tags }
  pods: { source: kube, version: v1, resource: pods }
  web: { view_of: pods, labels: "app in (web, shop)" }
`), Environment{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ of, prefix, filter, labels, at string }{
		{"services", "a/", `value.state != "passing"`, "", "meta.tags"},
		{"failing", "", "", "team=red", "meta.tags"},
		{"", "", "", "", "meta.tags"},
		{"", "", "", "", "metadata.labels"},
		{"pods", "", "", "app in (shop,web)", "metadata.labels"},
	} {
		w := c.Watches[i]
		if w.ViewOf != want.of || (w.Definition == nil) != (want.of == "") {
			t.Errorf("%s is a view of %q, with %v", w.Name, w.ViewOf, w.Definition)
			continue
		}
		if w.LabelsAt != want.at {
			t.Errorf("%s has labels at %q, want %q", w.Name, w.LabelsAt, want.at)
		}
		if w.Definition == nil {
			continue
		}
		p := w.Definition.Params()
		if p.Prefix != want.prefix || p.Filter != want.filter || p.Labels != want.labels || p.Labels != "" && p.LabelsAt != want.at {
			t.Errorf("%s selects %+v, want %+v", w.Name, p, want)
		}
	}
	if w := c.Watches[0]; w.Prime || w.Source != "" {
		t.Errorf("%+v", w)
	}
}

// TestCounts checks how the watches are counted that count, also those of a template.
func TestCounts(t *testing.T) {
	c, err := Parse("f", []byte(viewSources+`
watches:
  services: { source: local }
  states: { view_of: services, by: [state, "node.zone"], sum: cpu }
  "states-{region}": { view_of: "services-{region}", by: [state], params: { region: "[a-z]+" } }
  "services-{region}": { view_of: services, prefix: "{region}/", params: { region: "[a-z]+" } }
`), Environment{})
	if err != nil {
		t.Fatal(err)
	}
	if g := c.Watches[1].Grouping; g == nil || strings.Join(g.By(), ",") != "state,node.zone" || g.Sum() != "cpu" || c.Watches[0].Grouping != nil {
		t.Errorf("%+v", c.Watches[1])
	}
	if w, ok := c.Templates[0].Watch("states-eu"); !ok || w.Grouping == nil || w.Grouping.By()[0] != "state" {
		t.Errorf("%+v, %v", w, ok)
	}
}

// TestWindows checks which watches are windows, also of a template.
func TestWindows(t *testing.T) {
	c, err := Parse("f", []byte(viewSources+`
watches:
  services: { source: local }
  busiest: { view_of: services, order: "-cpu,name", limit: 20, offset: 5, filter: value.cpu > 1 }
  "busiest-{region}": { view_of: services, prefix: "{region}/", order: -cpu, limit: 3, offset: 0, params: { region: "[a-z]+" } }
`), Environment{})
	if err != nil {
		t.Fatal(err)
	}
	if w, is := c.Watches[1].Definition.Window(); !is || w.Limit != 20 || w.Offset != 5 || c.Watches[1].Definition.Params().Order != "-cpu,name" {
		t.Errorf("%+v", c.Watches[1])
	}
	of, ok := c.Templates[0].Watch("busiest-eu")
	if w, is := of.Definition.Window(); !ok || !is || w.Limit != 3 || of.Definition.Params().Prefix != "eu/" {
		t.Errorf("%+v, %v", of, ok)
	}
}

// TestViewErrors checks that each mistake is reported at its place, once.
func TestViewErrors(t *testing.T) {
	for name, c := range map[string]struct{ watches, want string }{
		"no such watch": {`
  services: { source: local }
  failing: { view_of: servces, filter: "true" }`, `f:7:23: watches.failing.view_of: there is no watch "servces"; did you mean "services"?`},
		"of itself": {`
  a: { view_of: a, prefix: x }`, `f:6:17: watches.a.view_of: a view of itself: a (line 6) is of a (line 6)`},
		"in a circle": {`
  b: { view_of: c, prefix: x }
  c: { view_of: b, prefix: x }
  d: { view_of: c, prefix: x }`, `f:6:17: watches.b.view_of: a view of itself: b (line 6) is of c (line 7) is of b (line 6)`},
		"a source too": {`
  services: { source: local }
  a: { view_of: services, source: local, prefix: x }`, `f:7:27: watches.a: source is for watches that have a source, and this one is a view of another`},
		"a key of a source": {`
  services: { source: local }
  a: { view_of: services, collection: processes, prefix: x }`, `f:7:27: watches.a: collection is for watches that have a source, and this one is a view of another`},
		"a key of a view": {`
  services: { source: local, filter: "true" }`, `f:6:30: watches.services: filter is for watches of gateway sources; "local" is of type store: use view_of in a watch of its own`},
		"a filter that cannot be meant": {`
  services: { source: local }
  a: { view_of: services, filter: "value.n = 1" }`, `f:7:35: watches.a.filter: column 9: `},
		"a field that cannot be meant": {`
  services: { source: local }
  a: { view_of: services, fields: [state, "a..b"] }`, `f:7:43: watches.a.fields[1]: column 3: `},
		"labels at no path": {`
  services: { source: local, labels_at: "a,b" }
  a: { view_of: services, labels: x }`, `f:6:41: watches.services.labels_at: column 2: there are several paths`},
		"of a watch with an error": {`
  services: { source: locl }
  a: { view_of: services, prefix: x }`, `f:6:23: watches.services.source: there is no source "locl"; did you mean "local"?`},
		"nothing narrowed": {`
  services: { source: local }
  a: { view_of: services }`, `f:7:3: watches.a: the view selects everything; want prefix, labels, filter or fields, order for the first ones, or by to count`},
		"a count of a part": {`
  services: { source: local }
  a: { view_of: services, by: [state], prefix: x }`, `f:7:3: watches.a: a count is of all of another watch; want prefix`},
		"a count by no path": {`
  services: { source: local }
  a: { view_of: services, by: ["a..b"] }`, `f:7:31: watches.a.by: column 3: a name is missing`},
		"a count by nothing": {`
  services: { source: local }
  a: { view_of: services, sum: n }`, `f:7:3: watches.a: by, column 1: no field is named`},
		"a count in an order": {`
  services: { source: local }
  a: { view_of: services, by: [state], order: n, limit: 5 }`, `f:7:3: watches.a: a count is of all of another watch; want prefix`},
		"an order without a limit": {`
  services: { source: local }
  a: { view_of: services, order: n }`, `f:7:3: watches.a: limit, column 1: it is missing: want 1 to 1000 with an order`},
		"a limit that is too large": {`
  services: { source: local }
  a: { view_of: services, order: n, limit: 1001 }`, `f:7:44: watches.a.limit: column 1: "1001": want 1 to 1000`},
		"an order without a limit above 0": {`
  services: { source: local }
  a: { view_of: services, order: n, limit: 0 }`, `f:7:44: watches.a.limit: "0": want a whole number of at least 1`},
		"an offset below 0": {`
  services: { source: local }
  a: { view_of: services, order: n, limit: 1, offset: -1 }`, `f:7:55: watches.a.offset: "-1": want a whole number`},
		"a list of orders": {`
  services: { source: local }
  a: { view_of: services, order: [a, -b], limit: 5 }`, `f:7:34: watches.a.order: `},
		"a list of orders alone": {`
  services: { source: local }
  a: { view_of: services, order: [a, -b] }`, `f:7:34: watches.a.order: `},
		"a count by a text": {`
  services: { source: local }
  a: { view_of: services, by: a }`, `f:7:31: watches.a.by: want a list, not text`},
		"a limit without an order": {`
  services: { source: local }
  a: { view_of: services, limit: 5 }`, `f:7:34: watches.a.limit: column 1: a limit belongs to an order: want order too`},
		"an order of a source": {`
  services: { source: local, order: n }`, `f:6:30: watches.services: order is for views: use view_of in a watch of its own`},
		"a sum of two": {`
  services: { source: local }
  a: { view_of: services, by: [s], sum: "a,b" }`, `f:7:41: watches.a.sum: column 1: there are 2 fields; want one`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f", []byte(viewSources+"watches:"+c.watches), Environment{})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("got %v\nwant %s…", err, c.want)
			}
		})
	}
}
