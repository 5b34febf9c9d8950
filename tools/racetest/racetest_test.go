// Package racetest_test tests the script racetest with a stand-in for go.
package racetest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const crash = "ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346 \"((exiting)) != (0)\" (0x0, 0x0) (tid=1)\n"

// TestSecondTry: only packages in which nothing but the detector failed are tested again.
func TestSecondTry(t *testing.T) {
	for name, c := range map[string]struct {
		output string // of the first run, which fails
		second string // the packages of the second run; empty: there is none
	}{
		"a crash":                      {"ok  \ta\t1s\n" + crash + "FAIL\tb\t2s\n?   \tc\t[no test files]\nFAIL\n", "b"},
		"two crashes":                  {crash + "FAIL\ta\t1s\n" + crash + "FAIL\tb\t2s\nFAIL\n", "a b"},
		"a test fails":                 {"--- FAIL: TestA (0.1s)\nFAIL\nFAIL\ta\t1s\nFAIL\n", ""},
		"a test fails in the same one": {"    --- FAIL: TestA/b (0.1s)\n" + crash + "FAIL\ta\t1s\nFAIL\n", ""},
		"a test fails in another":      {crash + "FAIL\ta\t1s\n--- FAIL: TestB (0.1s)\nFAIL\tb\t1s\nFAIL\n", ""},
		"a race":                       {"WARNING: DATA RACE\n" + crash + "FAIL\ta\t1s\nFAIL\n", ""},
		"a build fails":                {crash + "FAIL\ta\t1s\nFAIL\tb [build failed]\nFAIL\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "output"), c.output)
			fake := filepath.Join(dir, "go")
			write(t, fake, "#!/bin/sh\ncd '"+dir+"'\n[ ! -e first ] || { echo \"$*\" >second; exit 0; }\necho \"$*\" >first\ncat output\nexit 1\n")
			cmd := exec.Command("./racetest", "-short", "-p", "2", "--", "./...")
			cmd.Env = append(os.Environ(), "GO="+fake)
			out, err := cmd.CombinedOutput()
			if got := read(filepath.Join(dir, "first")); got != "test -race -short -p 2 ./..." {
				t.Errorf("the first run is go %s", got)
			}
			want := ""
			if c.second != "" {
				want = "test -race -short -p 2 -cpu 1 " + c.second
			}
			if got := read(filepath.Join(dir, "second")); got != want {
				t.Errorf("the second run is go %s, want %s", got, want)
			}
			if (err == nil) != (want != "") || !strings.HasPrefix(string(out), c.output) {
				t.Errorf("ends with %v, having printed %q", err, out)
			}
		})
	}
}

func write(t *testing.T, name, text string) {
	if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// read returns the text of a file, without the last line feed; empty if there is none.
func read(name string) string {
	b, _ := os.ReadFile(name)
	return strings.TrimSuffix(string(b), "\n")
}
