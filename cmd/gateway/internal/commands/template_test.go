package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

const templates = `
stream: { drain_delay: 0s }
sources: { local: { type: store } }
watches:
  notes: { source: local }
  "notes-{user}": { source: local, params: { user: "[a-z]+" }, linger: 1s, max: 2 }
  "team-{team}": { view_of: notes, params: { team: "[a-z-]+" }, filter: "value.team == {team}", linger: 1s }
`

// TestServeTemplates writes to, lists and streams watches of templates.
func TestServeTemplates(t *testing.T) {
	conf := file(t, "templates.yaml", templates)
	code, stdout, stderr := command(t, "config", "check", conf)
	if code != 0 || !strings.HasSuffix(stdout, ": ok: 1 source, 1 watch, 2 templates\n") {
		t.Fatalf("config check: exit code %d: %s%s", code, stdout, stderr)
	}
	g := serve(t, "--config", conf)
	g.put("a", `{"team":"red","n":1}`)
	g.put("b", `{"team":"blue","n":2}`)
	g.awaitBody("/v1/watches/team-red/resources", `"resources":[{"key":"a","revision":"1","value":{"team":"red","n":1}}]`)
	g.awaitBody("/v1/watches/team-green/resources", `"count":0`)
	if status, body := g.do("PUT", "/v1/watches/notes-ada/resources/x", `{"of":"ada"}`); status != 201 {
		t.Fatalf("a write: %d %s", status, body)
	}
	g.awaitBody("/v1/watches/notes-ada/resources", `"value":{"of":"ada"}`)
	stream := start(t, "watch", "--server", g.url(), "notes-ada")
	stream.expectOf("upsert")(`{"type":"upsert","watch":"notes-ada","key":"x","revision":"3","value":{"of":"ada"}}`)
	if status, _ := g.do("PUT", "/v1/watches/notes-ada/resources/y", `1`); status != 201 {
		t.Errorf("another write: %d", status)
	}
	stream.expectOf("upsert")(`{"type":"upsert","watch":"notes-ada","key":"y","revision":"4","value":1}`)
	for _, name := range []string{"notes-Ada", "notes-", "notes-a.b", "team-red%22%20%7C%7C%20true", "team-{team}"} {
		if status, body := g.do("GET", "/v1/watches/"+name+"/resources", ""); status != 404 || strings.Contains(body, "ada") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	// All but the one that has a subscriber are closed; what was written stays.
	g.awaitWatches("notes", "notes-ada")
	stream.signals <- os.Interrupt
	g.awaitWatches("notes")
	g.awaitBody("/v1/watches/notes-ada/resources", `"value":{"of":"ada"}`)
}

// awaitBody lists a watch until the answer contains a text.
func (s *served) awaitBody(path, want string) {
	s.t.Helper()
	for began := time.Now(); ; {
		status, body := s.do("GET", path, "")
		if strings.Contains(body, want) {
			return
		}
		if time.Since(began) > patience {
			s.t.Fatalf("%s: %d %s, want %s", path, status, body, want)
		}
	}
}

// awaitWatches lists the watches until there are just these.
func (s *served) awaitWatches(names ...string) {
	s.t.Helper()
	for began := time.Now(); ; {
		var list struct{ Watches []struct{ Name string } }
		_, body := s.do("GET", "/v1/watches", "")
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			s.t.Fatal(err)
		}
		var got []string
		for _, w := range list.Watches {
			got = append(got, w.Name)
		}
		if fmt.Sprint(got) == fmt.Sprint(names) {
			return
		}
		if time.Since(began) > patience {
			s.t.Fatalf("got %q, want %q", got, names)
		}
	}
}

// TestServeTemplatesOfAnotherGateway follows watches of templates of a gateway that are
// watches of a template here.
func TestServeTemplatesOfAnotherGateway(t *testing.T) {
	core := serve(t, "--config", file(t, "core.yaml", templates))
	core.put("a", `{"team":"red"}`)
	edge := serve(t, "--config", file(t, "edge.yaml", `
stream: { drain_delay: 0s }
sources:
  core: { type: gateway, url: "`+core.url()+`" }
  same: { type: grpc, address: "`+core.grpc+`" }
watches:
  notes: { source: core }
  "team-{team}": { source: core, params: { team: "[a-z]+" }, linger: 1s }
  "of-{team}": { source: same, params: { team: "[a-z]+" }, watch: "team-{team}", linger: 1s }
  "part-{team}": { source: core, params: { team: "[a-z]+" }, watch: notes, prefix: "{team}/", linger: 1s }
`))
	edge.awaitBody("/v1/watches/team-red/resources", `"key":"a"`)
	edge.awaitBody("/v1/watches/of-red/resources", `"key":"a"`)
	core.put("red%2Fx", `1`)
	edge.awaitBody("/v1/watches/part-red/resources", `"resources":[{"key":"red/x"`)
	edge.awaitWatches("notes")
	core.awaitWatches("notes")
	edge.awaitBody("/v1/watches/team-red/resources", `"key":"a"`)
}

// TestServeViewsOfTemplates follows views of the watches of a template, by their names and by
// a template of views.
func TestServeViewsOfTemplates(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	g := serve(t, "--config", file(t, "views.yaml", `
stream: { drain_delay: 0s }
sources: { local: { type: store } }
watches:
  first: { view_of: open-eu, prefix: a, prime: false, linger: 1s }
  always: { view_of: orders-us, prefix: a }
  "open-{region}": { view_of: "orders-{region}", params: { region: "[a-z]{2,4}" }, filter: value.open, linger: 1s }
  "orders-{region}": { source: local, params: { region: "[a-z]{2}" }, linger: 1s, max: 2, max_per_client: 2 }
`))
	g.awaitWatches("always", "first", "orders-us")
	if status, body := g.do("PUT", "/v1/watches/orders-eu/resources/a", `{"open":true}`); status != 201 {
		t.Fatalf("a write: %d %s", status, body)
	}
	stream := start(t, "watch", "--server", g.url(), "first")
	stream.expectOf("upsert")(`{"type":"upsert","watch":"first","key":"a","revision":"1","value":{"open":true}}`)
	g.awaitBody("/v1/watches/open-eu/resources", `"key":"a"`)
	g.do("PUT", "/v1/watches/orders-eu/resources/a", `{"open":false}`)
	stream.expectOf("delete")(`{"type":"delete","watch":"first","key":"a","revision":"2"}`)
	g.awaitWatches("always", "first", "open-eu", "orders-eu", "orders-us")
	if status, body := g.do("GET", "/v1/watches/open-asia/resources", ""); status != 404 {
		t.Errorf("a view of a watch that cannot be: %d %s", status, body)
	}
	if status, body := g.do("GET", "/v1/watches/open-cn/resources", ""); status != 503 || !strings.Contains(body, "2 watches of this kind are open, of 2 at most") {
		t.Errorf("a view of a watch that there is no room for: %d %s", status, body)
	}
	stream.signals <- os.Interrupt
	g.awaitWatches("always", "first", "orders-us")
}
