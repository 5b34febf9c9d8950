package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func commandLinePage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// example is a command of the page, and what it prints; … in it stands for anything on a line.
type example struct{ command, output string }

func examplesOf(page string) (out []example) {
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				out = append(out, example{command: command})
				continue
			}
			out[len(out)-1].output += line
		}
	}
	return out
}

// TestCommandLineExamples runs the examples of docs/command-line.md in a shell, one after the
// other, against one gateway.
func TestCommandLineExamples(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh on this machine")
	}
	g := serve(t)
	g.awaitPrimed()
	path := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "watchtide"), []byte("#!/bin/sh\nexec '"+self+"' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), asCommand+"=1", "GORACE=atexit_sleep_ms=0", "WATCHTIDE_SERVER="+g.url(), "WATCHTIDE_CONTEXTS="+filepath.Join(path, "contexts.yaml"),
		"PATH="+path+":"+os.Getenv("PATH"))
	examples := examplesOf(commandLinePage(t))
	if len(examples) < 15 {
		t.Fatalf("found %d examples", len(examples))
	}
	for _, e := range examples {
		c := exec.Command(shell, "-c", e.command)
		c.Env = environment
		got, _ := c.CombinedOutput() // the exit code shows in what follows
		want := strings.ReplaceAll(regexp.QuoteMeta(e.output), "…", `.+`)
		if !regexp.MustCompile(`^` + want + `$`).Match(got) {
			t.Errorf("$ %sgot\n%swant\n%s", e.command, got, e.output)
		}
	}
}

// TestCommandLinePageIsComplete: the page names each command, and only flags that exist.
func TestCommandLinePageIsComplete(t *testing.T) {
	page := commandLinePage(t)
	flags := map[string]bool{"--help": true}
	everyCommand(tree(), func(c *cobra.Command) {
		for _, set := range []string{c.LocalFlags().FlagUsages(), c.InheritedFlags().FlagUsages()} {
			for _, name := range regexp.MustCompile(`--[a-z-]+`).FindAllString(set, -1) {
				flags[name] = true
			}
		}
		if top := c.Parent(); top != nil && !top.HasParent() && !strings.Contains(page, "`"+c.Name()+"`") {
			t.Errorf("the page lacks the command %s", c.Name())
		}
	})
	for _, name := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(page, -1) {
		if !flags[name] {
			t.Errorf("the page names %s, which no command has", name)
		}
	}
	for _, name := range []string{"server", "context", "header", "ca-file", "cert-file", "key-file", "token-file", "insecure-token", "output", "if-revision", "if-absent", "text", "file"} {
		if !strings.Contains(page, "--"+name) {
			t.Errorf("the page lacks --%s", name)
		}
	}
}
