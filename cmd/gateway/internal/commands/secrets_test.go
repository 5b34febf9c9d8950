package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestTokenThatExpires: the line has the end, and the file takes it.
func TestTokenThatExpires(t *testing.T) {
	year := time.Now().UTC().Year() + 1
	for _, c := range []struct {
		expires     string
		least, most time.Duration // after now
	}{
		{"90d", 90*24*time.Hour - 2*time.Second, 90*24*time.Hour + time.Minute},
		{"12h", 12*time.Hour - 2*time.Second, 12*time.Hour + time.Minute},
		{"1h30m", 90*time.Minute - 2*time.Second, 91 * time.Minute},
		{fmt.Sprintf("%d-12-31T23:30:00+02:00", year), 0, 3 * 366 * 24 * time.Hour},
	} {
		before := time.Now()
		code, out, stderr := command(t, "token", "new", "ci", "--groups", "robots", "--expires", c.expires)
		secret, line, _ := strings.Cut(out, "\n")
		table, err := access.ParseTokens([]byte(line))
		if code != 0 || err != nil {
			t.Fatalf("%s: exit code %d, %v: %q, %s", c.expires, code, err, out, stderr)
		}
		who := table.Lookup(access.HashOfToken(secret))
		if after := who.Expires.Sub(before); after < c.least || after > c.most || !slices.Equal(who.Groups, []string{"robots"}) || !strings.HasSuffix(line, "Z\n") {
			t.Errorf("%s: the token of %+v ends after %v: %s", c.expires, who, after, line)
		}
	}
	_, out, _ := command(t, "token", "new", "ci", "--expires", fmt.Sprintf("%d-12-31T23:30:00+02:00", year))
	if want := fmt.Sprintf(" expires=%d-12-31T21:30:00Z\n", year); !strings.HasSuffix(out, want) {
		t.Errorf("got %q, want %q at the end", out, want)
	}
}

func TestSecretsThatCannotBeMade(t *testing.T) {
	for want, args := range map[string][]string{
		"want a command: token new NAME":                                   {"token"},
		"want a command: key new":                                          {"key"},
		"want the name of a principal":                                     {"token", "new"},
		`want one name, and got ["a" "b"]: each token is of one principal`: {"token", "new", "a", "b"},
		"words without spaces":                                             {"token", "new", "#a"},
		"--expires: want a time such as 90d, 12h or 2027-01-31T00:00:00Z":  {"token", "new", "a", "--expires", "soon"},
		"--expires: 0d is not in the future":                               {"token", "new", "a", "--expires", "0d"},
		"--expires: 2020-01-31T00:00:00Z is not in the future":             {"token", "new", "a", "--expires", "2020-01-31T00:00:00Z"},
		"want a time such as 90d":                                          {"token", "new", "a", "--expires", "99999d"},
		"want a time such as":                                              {"token", "new", "a", "--expires", "2027-01-31"},
		"a group is missing":                                               {"token", "new", "a", "--groups", "b,,c"},
	} {
		if code, out, stderr := command(t, args...); code == 0 || !strings.Contains(stderr, want) || out != "" {
			t.Errorf("%q: exit code %d: %s%s", args, code, out, stderr)
		}
	}
}
