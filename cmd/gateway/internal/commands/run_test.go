package commands

import (
	"os/exec"
	"strings"
	"testing"
)

func TestConfigCheck(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		code   int
		want   string
	}{
		"right":     {"sources: { s: { type: store } }\nwatches: { a: { source: s }, b: { source: s } }", 0, "ok: 1 source, 2 watches"},
		"empty":     {"", 0, "There is nothing to serve"},
		"two wrong": {"htp: {}\nstream: { heartbeat: 15 }", 1, `gateway.yaml:2:22: stream.heartbeat: "15"`},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command(t, "config", "check", file(t, "gateway.yaml", c.config))
			if code != c.code || !strings.Contains(stdout+stderr, c.want) || strings.Contains(stderr, "watchtide: ") {
				t.Errorf("exit code %d, want %d:\n%s%s", code, c.code, stdout, stderr)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"version":              {[]string{"version"}, 0, "watchtide gateway "},
		"version as a flag":    {[]string{"--version"}, 0, "watchtide gateway "},
		"nothing":              {nil, 0, "Available Commands"},
		"help names the codes": {[]string{"watch", "--help"}, 0, "4    --until was reached"},
		"unknown command":      {[]string{"srve"}, 2, "Did you mean this?\n\tserve"},
		"config alone":         {[]string{"config"}, 2, "config check FILE"},
		"config check alone":   {[]string{"config", "check"}, 2, "accepts 1 arg(s)"},
		"no such file":         {[]string{"config", "check", "/does/not/exist"}, 1, "no such file"},
		"bash":                 {[]string{"completion", "bash"}, 0, "__start_watchtide"},
		"zsh":                  {[]string{"completion", "zsh"}, 0, "#compdef watchtide"},
		"fish":                 {[]string{"completion", "fish"}, 0, "complete -c watchtide"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command(t, c.args...)
			if code != c.code || !strings.Contains(stdout+stderr, c.want) {
				t.Errorf("exit code %d, want %d:\n%s%s", code, c.code, stdout, stderr)
			}
		})
	}
}

// Each installed shell reads its script without a complaint.
func TestCompletionIsLoadable(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(err)
			}
			_, script, _ := command(t, "completion", shell)
			c := exec.Command(shell, "-n")
			c.Stdin = strings.NewReader(script)
			if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestCompletionOffersTheWatchesOfTheServer(t *testing.T) {
	g := serve(t)
	g.awaitPrimed()
	for _, args := range [][]string{{"watch"}, {"get"}} {
		_, stdout, _ := command(t, append([]string{"__complete"}, append(args, "--server", g.url(), "")...)...)
		if !strings.HasPrefix(stdout, "notes\tlocal, in_sync\n") {
			t.Errorf("%s: got %q", args[0], stdout)
		}
	}
	if _, stdout, _ := command(t, "__complete", "serve", "--log-level", ""); !strings.HasPrefix(stdout, "debug\ninfo\n") {
		t.Errorf("--log-level: got %q", stdout)
	}
	if _, stdout, _ := command(t, "__complete", "serve", "--log-format", ""); !strings.HasPrefix(stdout, "auto\ntext\njson\n") {
		t.Errorf("--log-format: got %q", stdout)
	}
	if _, stdout, _ := command(t, "__complete", "watch", "--until", ""); !strings.HasPrefix(stdout, "end_of_snapshot\n") {
		t.Errorf("--until: got %q", stdout)
	}
	if _, stdout, _ := command(t, "__complete", "watch", "--server", "http://127.0.0.1:1", ""); strings.Contains(stdout, "notes") {
		t.Errorf("without a server: got %q", stdout)
	}
}
