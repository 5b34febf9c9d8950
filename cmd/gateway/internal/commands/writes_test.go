package commands

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

// typed runs a command line to its end, with a text at standard input.
func typed(t *testing.T, text string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := process{stdin: strings.NewReader(text), stdout: &out, stderr: &errs, exit: func(int) {}}
	code = run(t.Context(), p, args)
	return code, out.String(), errs.String()
}

// A value is stored as it was given, wherever it comes from, and its revision is printed.
func TestPut(t *testing.T) {
	g := serve(t)
	g.awaitPrimed()
	named := file(t, "value.json", "{\"n\": 9007199254740993}\n")
	for i, c := range []struct {
		input string
		args  []string
		want  string // the value
	}{
		{"", []string{`{"a":[1,2]}`}, `{"a":[1,2]}`},
		{"[1]\n", nil, `[1]`},
		{"2", []string{"--file", "-"}, `2`},
		{"", []string{"--file", named}, `{"n":9007199254740993}`},
		{"", []string{"--text", `a "b" <c>`}, `"a \"b\" <c>"`},
		{"two\nlines\n", []string{"--text"}, `"two\nlines\n"`},
		{"", []string{"", "--text"}, `""`},
	} {
		args := append([]string{"put", "notes", "a/b ?#", "--server", g.url()}, c.args...)
		code, stdout, stderr := typed(t, c.input, args...)
		if want := string(rune('1'+i)) + "\n"; code != 0 || stdout != want || stderr != "" {
			t.Errorf("%q: exit code %d: %s%s, want revision %s", c.args, code, stdout, stderr, want)
		}
		if _, got, _ := command(t, "get", "notes", "a/b ?#", "-o", "ndjson", "--server", g.url()); !strings.HasSuffix(got, `"value":`+c.want+"}\n") {
			t.Errorf("%q: stored %s, want %s", c.args, got, c.want)
		}
	}
	for form, want := range map[string]string{
		"json":              "{\n  \"key\": \"..\",\n  \"revision\": \"%\",\n  \"value\": 1\n}\n",
		"yaml":              "key: \"..\"\nrevision: \"%\"\nvalue: 1\n",
		"jsonpath=.value":   "1\n",
		"jsonpath={.value}": "1\n",
	} {
		_, stdout, stderr := command(t, "put", "notes", "..", "1", "-o", form, "--server", g.url())
		_, revision, _ := command(t, "get", "notes", "..", "-o", "jsonpath=.revision", "--server", g.url())
		if want = strings.ReplaceAll(want, "%", strings.TrimSpace(revision)); stdout != want {
			t.Errorf("-o %s: %s%s, want %s", form, stdout, stderr, want)
		}
	}
}

// A conditional write that is not made has an exit code of its own, and changes nothing.
func TestConditionalWrites(t *testing.T) {
	g := serve(t)
	g.put("a", `1`)
	for _, c := range []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"put", "notes", "a", "2", "--if-revision", "9"}, 5, "", "is at revision 1, 9 was expected"},
		{[]string{"put", "notes", "a", "2", "--if-absent"}, 5, "", "412"},
		{[]string{"delete", "notes", "a", "--if-revision", "9"}, 5, "", "412"},
		{[]string{"put", "notes", "a", "2", "--if-revision", "1"}, 0, "2\n", ""},
		{[]string{"put", "notes", "b", "2", "--if-absent"}, 0, "3\n", ""},
		{[]string{"delete", "notes", "a", "--if-revision", "2"}, 0, "deleted\n", ""},
		{[]string{"delete", "notes", "a", "--if-revision", "2"}, 5, "", "412"},
		{[]string{"delete", "notes", "a"}, 0, "absent\n", ""},
	} {
		code, stdout, stderr := command(t, append(c.args, "--server", g.url())...)
		if code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%q: exit code %d: %s%s, want %d and %s%s", c.args, code, stdout, stderr, c.code, c.stdout, c.stderr)
		}
	}
	if _, stdout, _ := command(t, "get", "notes", "--server", g.url()); stdout != `{"key":"b","revision":"3","value":2}`+"\n" {
		t.Errorf("left: %s", stdout)
	}
}

func TestWritesRefuse(t *testing.T) {
	g := serve(t, "--demo")
	g.awaitPrimed()
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"not JSON":             {[]string{"put", "notes", "a", "hello"}, 1, "the value is not JSON: invalid character 'h'"},
		"advice for a text":    {[]string{"put", "notes", "a", "hello"}, 1, "a text needs --text"},
		"no UTF-8":             {[]string{"put", "notes", "a", "\xff", "--text"}, 1, "the value is not UTF-8"},
		"nothing":              {[]string{"put", "notes", "a"}, 1, "the value is not JSON: unexpected end"},
		"two values":           {[]string{"put", "notes", "a", "1", "--file", "x"}, 2, "want VALUE or --file, not both"},
		"no such file":         {[]string{"put", "notes", "a", "--file", "/does/not/exist"}, 1, "no such file"},
		"a revision of none":   {[]string{"put", "notes", "a", "1", "--if-revision", "0"}, 2, "put --if-absent"},
		"no revision":          {[]string{"delete", "notes", "a", "--if-revision", "x"}, 2, `--if-revision "x": want a revision`},
		"two conditions":       {[]string{"put", "notes", "a", "1", "--if-revision", "1", "--if-absent"}, 2, "want --if-revision or --if-absent"},
		"a form that is none":  {[]string{"put", "notes", "a", "1", "-o", "table"}, 2, "want json, yaml or jsonpath=TEMPLATE"},
		"a watch that is read": {[]string{"put", "mounts", "a", "1"}, 1, "405 Method Not Allowed"},
		"an unknown watch":     {[]string{"delete", "nots", "a"}, 1, `did you mean "notes"?`},
		"no key":               {[]string{"delete", "notes"}, 2, "accepts 2 arg(s)"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := typed(t, "", append(c.args, "--server", g.url())...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, want %d: %s%s", code, c.code, stdout, stderr)
			}
		})
	}
	t.Run("too large", func(t *testing.T) {
		code, _, stderr := typed(t, `"`+strings.Repeat("x", 16<<20), "put", "notes", "a", "--server", g.url())
		if code != 1 || !strings.Contains(stderr, "more than 16777216 bytes") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
}

// Standard input that says nothing, such as a terminal, does not keep an interrupt waiting.
func TestPutIsInterrupted(t *testing.T) {
	silent, typing := io.Pipe()
	defer typing.Close()
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	var out, errs bytes.Buffer
	p := process{stdin: silent, stdout: &out, stderr: &errs, signals: signals, exit: func(int) {}}
	if code := run(t.Context(), p, []string{"put", "notes", "a"}); code != 130 || out.String()+errs.String() != "" {
		t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
	}
}
