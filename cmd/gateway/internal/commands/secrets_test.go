package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/access"
)

// TestMadeSecretsFitTheConfiguration: what the commands print is what config check takes.
func TestMadeSecretsFitTheConfiguration(t *testing.T) {
	code, key, stderr := command(t, "key", "new")
	if code != 0 || strings.Count(key, "\n") != 1 {
		t.Fatalf("exit code %d: %q, %s", code, key, stderr)
	}
	code, out, stderr := command(t, "token", "new", "ci", "--groups", "robots,deploy")
	secret, line, _ := strings.Cut(out, "\n")
	if code != 0 || !strings.HasPrefix(line, "ci sha256:") || !strings.HasSuffix(line, " robots,deploy\n") || strings.Contains(line, secret) {
		t.Fatalf("exit code %d: %q, %s", code, out, stderr)
	}
	conf := file(t, "gateway.yaml", "auth: { key_files: [a.key], tokens_file: tokens }\nsources: { local: { type: store } }\nwatches: { notes: { source: local } }")
	for name, content := range map[string]string{"a.key": key, "tokens": line} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(conf), name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, stderr := command(t, "config", "check", conf); code != 0 {
		t.Errorf("config check: exit code %d: %s%s", code, out, stderr)
	}
	table, err := access.ParseTokens([]byte(line))
	if err != nil || table.Lookup(access.HashOfToken(secret)).Name != "ci" {
		t.Errorf("the token is not that of the line: %v", err)
	}
}

func TestSecretsThatCannotBeMade(t *testing.T) {
	for want, args := range map[string][]string{
		"want a command: token new NAME":                                   {"token"},
		"want a command: key new":                                          {"key"},
		"want the name of a principal":                                     {"token", "new"},
		`want one name, and got ["a" "b"]: each token is of one principal`: {"token", "new", "a", "b"},
		"words without spaces":                                             {"token", "new", "#a"},
		"a group is missing":                                               {"token", "new", "a", "--groups", "b,,c"},
	} {
		if code, out, stderr := command(t, args...); code == 0 || !strings.Contains(stderr, want) || out != "" {
			t.Errorf("%q: exit code %d: %s%s", args, code, out, stderr)
		}
	}
}
