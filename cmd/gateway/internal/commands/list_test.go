package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestList: the state and the counts of each watch, in every form.
func TestList(t *testing.T) {
	g := serve(t)
	g.put("a", `1`)
	g.put("b", `1`)
	var out, errs bytes.Buffer
	p := process{stdout: &out, stderr: &errs, exit: func(int) {}, size: func() (int, int, error) { return 80, 24, nil }}
	if code := run(t.Context(), p, []string{"list", "--server", g.url()}); code != 0 {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	table := regexp.MustCompile(`^NAME   SOURCE  STATE    FOR +RESOURCES  SUBSCRIBERS  WRITABLE  REASON\nnotes  \w+ +in_sync  \d+[sm] +2          0            yes\n$`)
	if !table.MatchString(out.String()) {
		t.Errorf("got\n%s", out.String())
	}
	_, all := g.do("GET", "/v1/watches", "")
	var want struct{ Watches []json.RawMessage }
	if err := json.Unmarshal([]byte(all), &want); err != nil {
		t.Fatal(err)
	}
	if _, stdout, _ := command(t, "list", "--server", g.url()); stdout != string(want.Watches[0])+"\n" {
		t.Errorf("in a pipe: got %s, want %s", stdout, want.Watches[0])
	}
	for form, want := range map[string]string{
		"jsonpath={.watches[*].name}": "notes\n",
		"json":                        `"count": 2,`,
		"yaml":                        "    count: 2\n",
		"table":                       "RESOURCES",
	} {
		if code, stdout, stderr := command(t, "list", "-o", form, "--server", g.url()); code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("-o %s: exit code %d: %s%s", form, code, stdout, stderr)
		}
	}
}

// A watch of which only a part may be seen has no counts, and what a gateway says is escaped.
func TestListShowsWhatIsKnown(t *testing.T) {
	s := ask(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"watches":[{"name":"a","source":"s","state":"stale","since":"2001-01-01T00:00:00Z","partial":true,"reason":"gone\u001b[31m"},{"name":"b"}]}`)
	})
	code, stdout, stderr := command(t, "list", "-o", "table", "--server", s.URL)
	lines := strings.Split(stdout, "\n")
	if code != 0 || len(lines) != 4 || !regexp.MustCompile(`^a +s +stale +\d+d +- +- +no +gone·\[31m$`).MatchString(lines[1]) || !regexp.MustCompile(`^b +- +0 +0 +no$`).MatchString(lines[2]) {
		t.Errorf("exit code %d: %q %s", code, lines, stderr)
	}
}

// The forms of get are of the whole state, or of the one resource.
func TestGetInForms(t *testing.T) {
	g := serve(t)
	g.put("b", `{"n":9007199254740993}`)
	g.put("a", `"x"`)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"notes", "-o", "jsonpath={.revision} {.resources[*].key}"}, "2 b a\n"},
		{[]string{"notes", "-o", "ndjson"}, `{"key":"b","revision":"1","value":{"n":9007199254740993}}` + "\n" + `{"key":"a","revision":"2","value":"x"}` + "\n"},
		{[]string{"notes", "-o", "table"}, "KEY  VALUE  N\na    x\nb           9007199254740993\n"},
		{[]string{"notes", "b", "-o", "yaml"}, "key: b\nrevision: \"1\"\nvalue:\n  \"n\": 9007199254740993\n"},
		{[]string{"notes", "b", "-o", "json"}, "{\n  \"key\": \"b\",\n  \"revision\": \"1\",\n  \"value\": {\n    \"n\": 9007199254740993\n  }\n}\n"},
		{[]string{"notes", "b", "-o", "table"}, "KEY  N\nb    9007199254740993\n"},
		{[]string{"notes", "a", "-o", "jsonpath=.value"}, "x\n"},
	} {
		if code, stdout, stderr := command(t, append([]string{"get", "--server", g.url()}, c.args...)...); code != 0 || stdout != c.want {
			t.Errorf("%q: exit code %d:\n%s%swant\n%s", c.args, code, stdout, stderr, c.want)
		}
	}
	_, stdout, _ := command(t, "get", "notes", "-o", "json", "--server", g.url())
	var state struct {
		Watch, Position, Revision string
		Resources                 []json.RawMessage
	}
	if err := json.Unmarshal([]byte(stdout), &state); err != nil || state.Watch != "notes" || !strings.HasPrefix(state.Position, "notes@") || state.Revision != "2" || len(state.Resources) != 2 {
		t.Errorf("got %s, %v", stdout, err)
	}
	if code, _, stderr := command(t, "get", "notes", "-o", "jsonpath={.a[}", "--server", g.url()); code != 2 {
		t.Errorf("a wrong template: exit code %d: %s", code, stderr)
	}
}
