package pack

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestImageIsThatOfTheDockerfile: it does not matter who made the image.
func TestImageIsThatOfTheDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		want[instruction] = rest
	}
	got := Image{}.process()
	if got.User != want["USER"] {
		t.Errorf("user %s, in the Dockerfile %s", got.User, want["USER"])
	}
	if ports := slices.Collect(maps.Keys(got.ExposedPorts)); len(ports) != 1 || ports[0] != want["EXPOSE"]+"/tcp" {
		t.Errorf("ports %v, in the Dockerfile %s", ports, want["EXPOSE"])
	}
	for instruction, words := range map[string][]string{"ENTRYPOINT": got.Entrypoint, "CMD": got.Cmd} {
		var inFile []string
		if err := json.Unmarshal([]byte(want[instruction]), &inFile); err != nil || !slices.Equal(words, inFile) {
			t.Errorf("%s %q, in the Dockerfile %q, %v", instruction, words, inFile, err)
		}
	}
}
