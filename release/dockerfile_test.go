package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDockerfile runs what the Dockerfile runs to make the image, in this working folder.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	out, ran := t.TempDir(), 0
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "RUN ")
		if !ok || command == "go mod download" {
			continue
		}
		if strings.HasSuffix(command, "\\") {
			t.Fatalf("%s: this test reads commands of one line", command)
		}
		run := exec.Command("sh", "-ec", strings.ReplaceAll(command, "/out/", out+"/"))
		run.Dir, run.Env = "..", append(os.Environ(), "VERSION=dev")
		if said, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, said)
		}
		ran++
	}
	if ran != 2 {
		t.Errorf("%d commands were run, want the build and the licences", ran)
	}
	licenses, err := os.ReadFile(filepath.Join(out, "THIRD-PARTY-LICENSES.txt"))
	if err != nil || !strings.Contains(string(licenses), "go.etcd.io/bbolt") {
		t.Errorf("%d bytes of licences, error %v", len(licenses), err)
	}
}
