package commands

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestStoreFiles: a file is made from an export, checked and compacted.
func TestStoreFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.db")
	lines := `{"watchtide_store":1,"revision":3}{"watch":"notes","key":"a","revision":3,"value":{"n":1}}{"end":1}`
	for _, c := range []struct{ args, want string }{
		{"import", path + ": 1 resource\n"},
		{"check", path + ": ok: revision 3, "},
		{"compact", path + ": "},
		{"check", path + ": ok: revision 3, "},
		{"export", `"key":"a","revision":3`},
	} {
		var stdout, stderr bytes.Buffer
		p := process{stdin: strings.NewReader(lines), stdout: &stdout, stderr: &stderr, exit: func(int) {}}
		if code := run(t.Context(), p, []string{"store", c.args, path}); code != 0 || !strings.Contains(stdout.String(), c.want) {
			t.Errorf("store %s: exit code %d, %s%s", c.args, code, &stdout, &stderr)
		}
	}
	if code, _, stderr := command(t, "store", "compact", path+"x"); code == 0 || !strings.Contains(stderr, path+"x") {
		t.Errorf("a file that is missing: exit code %d, %s", code, stderr)
	}
}
