//go:build servers

package commands

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// groff, which shows the pages, finds nothing to warn of.
func TestManualIsFormatted(t *testing.T) {
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("groff is missing: apt-get install groff-base")
	}
	folder := t.TempDir()
	if code, _, stderr := command(t, "manual", folder); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	out, err := exec.Command("groff", append([]string{"-k", "-man", "-ww", "-z", "-Tutf8"}, pages...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
