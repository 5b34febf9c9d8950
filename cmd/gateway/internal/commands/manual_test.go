package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// tree returns the command line, of which nothing is run.
func tree() *cobra.Command { return (&app{}).command() }

// everyCommand calls a function for each command that the help lists, cobra's own apart.
func everyCommand(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() && child.Name() != "completion" && child.Name() != "help" {
			everyCommand(child, do)
		}
	}
}

// Each command has a page, and each page has the flags of its command.
func TestManualHasEveryCommand(t *testing.T) {
	folder := t.TempDir()
	if code, _, stderr := command(t, "manual", folder); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	pages := 0
	everyCommand(tree(), func(c *cobra.Command) {
		pages++
		page, err := os.ReadFile(filepath.Join(folder, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(string(page), "--"+f.Name) {
				t.Errorf("%s: the page lacks --%s", c.CommandPath(), f.Name)
			}
		})
	})
	if pages < 15 {
		t.Errorf("there are %d commands, want all", pages)
	}
}
