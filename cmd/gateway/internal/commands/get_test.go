package commands

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestGetPrintsLinesInAPipe(t *testing.T) {
	g := serve(t)
	g.put("b%2Fc", `{"s": "<b>", "n": 9007199254740993}`)
	g.put("a", `"x"`)
	code, stdout, stderr := command(t, "get", "notes", "--server", g.url())
	const want = `{"key":"b/c","revision":"1","value":{"s": "<b>", "n": 9007199254740993}}` + "\n" +
		`{"key":"a","revision":"2","value":"x"}` + "\n"
	if code != 0 || stdout != want || stderr != "" {
		t.Errorf("exit code %d:\n%s%s\nwant\n%s", code, stdout, stderr, want)
	}
}

func TestGetPrintsOneResource(t *testing.T) {
	g := serve(t)
	g.put("b%2Fc", `{"n":1}`)
	code, stdout, stderr := command(t, "get", "notes", "b/c", "--server", g.url())
	if want := `{"key":"b/c","revision":"1","value":{"n":1}}` + "\n"; code != 0 || stdout != want {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

func TestGetReadsMoreThanAPage(t *testing.T) {
	g := serve(t)
	const n = 5
	for i := range n { // a page has about 3 MiB
		g.put(fmt.Sprint(i), `"`+strings.Repeat("x", 1_000_000)+`"`)
	}
	if _, page := g.do("GET", "/v1/watches/notes/resources?page_size=10000", ""); strings.Count(page, `"key":`) >= n {
		t.Fatalf("%d values are one page", n)
	}
	code, stdout, _ := command(t, "get", "notes", "--server", g.url())
	if got := strings.Count(stdout, "\n"); code != 0 || got != n {
		t.Errorf("exit code %d, %d lines, want %d", code, got, n)
	}
}

func TestGetDrawsATableOnATerminal(t *testing.T) {
	g := serve(t)
	g.put("b", `{"n":2}`)
	g.put("a", `{"n":1}`)
	terminal := func(args ...string) string {
		var out, errs bytes.Buffer
		p := process{stdout: &out, stderr: &errs, exit: func(int) {}, size: func() (int, int, error) { return 80, 24, nil }}
		if code := run(t.Context(), p, append(args, "--server", g.url())); code != 0 {
			t.Errorf("exit code %d: %s", code, errs.String())
		}
		return out.String()
	}
	if got := terminal("get", "notes"); got != "KEY  N\na    1\nb    2\n" {
		t.Errorf("got\n%s", got)
	}
	if got := terminal("get", "notes", "a"); got != "{\n  \"key\": \"a\",\n  \"revision\": \"2\",\n  \"value\": {\n    \"n\": 1\n  }\n}\n" {
		t.Errorf("got\n%s", got)
	}
}

func TestGetNarrowsToAPrefix(t *testing.T) {
	g := serve(t)
	g.put("eu/a", `1`)
	g.put("us/b", `2`)
	_, stdout, _ := command(t, "get", "notes", "--prefix", "eu/", "--server", g.url())
	if stdout != `{"key":"eu/a","revision":"1","value":1}`+"\n" {
		t.Errorf("got %s", stdout)
	}
}

func TestGetAWindow(t *testing.T) {
	g := serve(t)
	for i, key := range []string{"a", "b", "c"} {
		g.put(key, fmt.Sprintf(`{"n":%d}`, i))
	}
	const template = "jsonpath={.resources[*].key} {.total} {.before} {.next}"
	next := ""
	for _, c := range []struct{ place, form, want string }{
		{"--offset=0", template, "c b 3 0 NEXT\n"},
		{"--offset=1", template, "b a 3 1 \n"},
		{"--prefix=x", template, " 0 0 \n"},
		{"--offset=0", "json", "\"revision\": \"3\",\n  \"total\": 3,\n  \"before\": 0,\n  \"next\": \"NEXT\",\n  \"resources\": ["},
		{"--prefix=x", "json", "\"revision\": \"3\",\n  \"total\": 0,\n  \"before\": 0,\n  \"resources\": []"},
		{"--offset=0", "yaml", "revision: \"3\"\ntotal: 3\nbefore: 0\nnext: NEXT\nresources:\n"},
	} {
		code, stdout, stderr := command(t, "get", "notes", "--order=-n", "--limit=2", c.place, "--server", g.url(), "-o", c.form)
		if next == "" {
			if at := strings.Fields(stdout); len(at) == 5 {
				next = at[4]
			}
		}
		want := strings.ReplaceAll(c.want, "NEXT", next)
		if code != 0 || !strings.Contains(stdout, want) || c.form == template && stdout != want {
			t.Errorf("%s -o %s: exit code %d: %q %s, want %q", c.place, c.form, code, stdout, stderr, want)
		}
	}
	if next == "" {
		t.Error("there is no next")
	}
	g.put("eu/x", `{"n":9007199254740993}`)
	g.put("eu/y", `{"n":9007199254740992}`)
	for _, form := range []string{"table", ""} {
		var out, errs bytes.Buffer
		p := process{stdout: &out, stderr: &errs, exit: func(int) {}, size: func() (int, int, error) { return 80, 24, nil }}
		args := []string{"get", "notes", "--order=-n", "--limit=4", "--server", g.url()}
		if form != "" {
			args = append(args, "-o", form)
		}
		const want = "KEY   N\neu/x  9007199254740993\neu/y  9007199254740992\nc     2\nb     1\n"
		if code := run(t.Context(), p, args); code != 0 || out.String() != want {
			t.Errorf("-o %q: exit code %d:\n%s%s", form, code, out.String(), errs.String())
		}
	}
	if code, _, stderr := command(t, "get", "notes", "a", "--order=n", "--limit=2", "--server", g.url()); code != exitUsage || !strings.Contains(stderr, "--order is for all resources") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestGetExitCodes(t *testing.T) {
	g := serve(t)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown watch":       {[]string{"x"}, 1, `404 Not Found: there is no watch "x"`},
		"unknown key":         {[]string{"notes", "x"}, 1, "404 Not Found"},
		"no watch":            {nil, 2, "accepts between 1 and 2 arg(s)"},
		"too many":            {[]string{"a", "b", "c"}, 2, "accepts between 1 and 2 arg(s)"},
		"a prefix of one key": {[]string{"notes", "x", "--prefix", "p"}, 2, "--prefix is for all resources"},
		"not a server URL":    {[]string{"notes", "--server", "localhost"}, 2, "want a URL"},
		"no server":           {[]string{"notes", "--server", "http://127.0.0.1:1"}, 1, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command(t, append([]string{"get", "--server", g.url()}, c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
				t.Errorf("exit code %d, want %d: %s", code, c.code, stderr)
			}
		})
	}
}
