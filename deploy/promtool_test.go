//go:build servers

package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// promtool runs promtool of the package prometheus in the directory of the rules.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), realserver.Installed(t, "promtool"), args...)
	c.Dir = "prometheus"
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestRules checks the rules, and that each alert fires when it should and only then.
func TestRules(t *testing.T) {
	promtool(t, "check", "rules", "rules.yaml")
	promtool(t, "test", "rules", "rules_test.yaml")
}

// TestPanelsAreQueries checks that the expressions of the dashboard are PromQL.
func TestPanelsAreQueries(t *testing.T) {
	text := "groups:\n  - name: panels\n    rules:\n"
	n := 0
	for where, expr := range expressions(t) {
		if strings.HasPrefix(where, "panel ") {
			n++
			text += fmt.Sprintf("      - { record: 'panel:%d', expr: '%s' }\n", n, strings.ReplaceAll(expr, "$__rate_interval", "5m"))
		}
	}
	file := filepath.Join(t.TempDir(), "panels.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}
