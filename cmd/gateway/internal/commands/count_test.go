package commands

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestCount: the groups, in every form, and what is wrong with a command line.
func TestCount(t *testing.T) {
	g := serve(t)
	g.put("a", `{"state":"up","n":1.5}`)
	g.put("b", `{"state":"up","n":2}`)
	g.put("c", `{"state":"down"}`)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--by", "state"}, `{"key":"down","revision":"3","value":{"count":1}}` + "\n" + `{"key":"up","revision":"3","value":{"count":2}}` + "\n"},
		{[]string{"--by", "state", "--sum", "n", "-o", "table"}, "KEY   COUNT  SUM  MIN  MAX\ndown  1\nup    2      3.5  1.5  2\n"},
		{[]string{"--by", "state", "--keys", "a,c"}, `{"key":"down","revision":"3","value":{"count":1}}` + "\n" + `{"key":"up","revision":"3","value":{"count":1}}` + "\n"},
		{[]string{"--by", "state", "--by", "n", "--filter", "value.n > 1.7", "-o", "jsonpath={.revision} {.resources[*].key}"}, `3 ["up",2]` + "\n"},
	} {
		if code, stdout, stderr := command(t, append([]string{"count", "notes", "--server", g.url()}, c.args...)...); code != 0 || stdout != c.want {
			t.Errorf("%q: exit code %d:\n%s%swant\n%s", c.args, code, stdout, stderr, c.want)
		}
	}
	for want, args := range map[string][]string{
		"want --by PATHS":          nil,
		"by, column 3":             {"--by", "a..b"},
		"a key is missing":         {"--by", "a", "--keys", "a,,b"},
		"--filter, column 9":       {"--by", "a", "--filter", "value.a = 1"},
		"--output json: want":      {"--by", "a", "--follow", "-o", "json"},
		"there are 2 fields; want": {"--by", "a", "--sum", "a,b"},
	} {
		if code, stdout, stderr := command(t, append([]string{"count", "notes", "--server", g.url()}, args...)...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d: %s%s, want %q", args, code, stdout, stderr, want)
		}
	}
}

// TestCountFollows: each change of a group is a line.
func TestCountFollows(t *testing.T) {
	g := serve(t)
	g.put("a", `{"state":"up"}`)
	w := start(t, "count", "notes", "--by", "state", "--follow", "--server", g.url())
	for {
		var e struct{ Type, Key string }
		line := w.line()
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch {
		case e.Type == "end_of_snapshot":
			g.put("a", `{"state":"down"}`)
		case e.Type == "delete" && e.Key == "up":
			return
		}
	}
}

// TestDeclaredCountsAreServed: a watch of the configuration counts another one.
func TestDeclaredCountsAreServed(t *testing.T) {
	conf := file(t, "gateway.yaml", `
sources: { local: { type: store } }
watches:
  notes: { source: local }
  states: { view_of: notes, by: [state], sum: n }
`)
	g := serve(t, "--config", conf)
	g.put("a", `{"state":"up","n":1.5}`)
	g.put("b", `{"state":"up"}`)
	w := start(t, "watch", "states", "--server", g.url())
	for line := ""; !strings.Contains(line, `"key":"up","revision":"2","value":{"count":2,"sum":1.5,"min":1.5,"max":1.5}`); line = w.line() {
	}
	_, topology := fetch(t, http.DefaultTransport, "GET", "http://"+g.operations+"/v1/topology", "")
	if !strings.Contains(topology, `{"name":"states","source":"view of notes","by":"state","state":`) || strings.Count(topology, `"by"`) != 1 {
		t.Errorf("the topology is %s", topology)
	}
}
