package commands

import (
	"bytes"
	"strings"
	"testing"
)

// TestWatchInForms: each event is in the form, on a terminal and in a pipe.
func TestWatchInForms(t *testing.T) {
	g := serve(t)
	g.put("a", `{"n":1}`)
	watch := []string{"watch", "notes", "--until", "end_of_snapshot", "--server", g.url()}
	for form, want := range map[string]string{
		"ndjson":                  `{"type":"reset","watch":"notes","reason":"initial"}` + "\n",
		"yaml":                    "---\ntype: upsert\nwatch: notes\nkey: a\nrevision: \"1\"\nvalue:\n  \"n\": 1\n---\n",
		"jsonpath={.key}{.count}": "a\n1\n", // an upsert, and an end_of_snapshot
	} {
		var out, errs bytes.Buffer
		p := process{stdout: &out, stderr: &errs, exit: func(int) {}, size: func() (int, int, error) { return 80, 24, nil }}
		if code := run(t.Context(), p, append(watch, "-o", form)); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("-o %s on a terminal: exit code %d: %s\n%s", form, code, errs.String(), out.String())
		}
		code, stdout, stderr := command(t, append(watch, "-o", form)...)
		if code != 0 || !strings.Contains(stdout, want) || strings.HasPrefix(form, "jsonpath") && stdout != want {
			t.Errorf("-o %s: exit code %d: %s\n%s", form, code, stderr, stdout)
		}
	}
	for want, args := range map[string][]string{
		"want a terminal":                {"-o", "table"},
		"want table, ndjson, yaml or":    {"-o", "json"},
		"without --quiet and --exec":     {"-o", "yaml", "--quiet"},
		"want it without --quiet and --": {"-o", "yaml", "--exec", "true", "--state", "s"},
	} {
		if code, _, stderr := command(t, append(watch, args...)...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		}
	}
}
