package config

import (
	"github.com/watchtide/watchtide/internal/source/files"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const everyKeyOfFiles = `
sources: { disk: { type: files, dir: /srv/x, max_value_bytes: 2MiB, max_bytes: 1GiB, rescan: 5s } }
watches: { pages: { source: disk } }
`

func TestFilesSource(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		want       files.Config
		err        string // a part of it
	}{
		{"the least", `dir: resources`, files.Config{Dir: "/etc/gateway/resources"}, ""},
		{"everything", `dir: /srv/x, max_value_bytes: 2MiB, max_bytes: 1GiB, rescan: 5s`,
			files.Config{Dir: "/srv/x", MaxValueBytes: 2 << 20, MaxBytes: 1 << 30, Rescan: 5 * time.Second}, ""},
		{"no scans", `dir: ../x, rescan: 0s`, files.Config{Dir: "/etc/x", Rescan: Off}, ""},
		{"from the environment", `dir: "${DIR}"`, files.Config{Dir: "/from/env"}, ""},
		{"no directory", `rescan: 5s`, files.Config{}, "sources.disk: dir is missing, which a source of type files must have"},
		{"an empty name", `dir: ""`, files.Config{}, `"": want the name of a directory`},
		{"not a name", `dir: [a]`, files.Config{}, "sources.disk.dir: want the name of a directory, not a list"},
		{"too often", `dir: x, rescan: 10ms`, files.Config{}, "want a duration of at least 1s, or 0s for none"},
		{"misspelled", `dri: x`, files.Config{}, `did you mean "dir"?`},
		{"key of another type", `dir: x, address: "y:1"`, files.Config{}, `unknown key "address"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "sources: { disk: { type: files, " + c.keys + " } }\nwatches: { pages: { source: disk } }\n"
			env := Environment{Getenv: func(string) (string, bool) { return "/from/env", true }}
			got, err := Parse("/etc/gateway/gateway.yaml", []byte(text), env)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q in it", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c.want.Dir = filepath.FromSlash(c.want.Dir)
			if got := got.Sources[0]; got.Type != Files || got.Files != c.want {
				t.Errorf("read %+v, want %+v", got.Files, c.want)
			}
		})
	}
}

func TestFilesWatchHasNoKeysOfItsOwn(t *testing.T) {
	text := "sources: { disk: { type: files, dir: x } }\nwatches: { pages: { source: disk, prefix: a } }\n"
	_, err := Parse("gateway.yaml", []byte(text), Environment{})
	if err == nil || !strings.Contains(err.Error(), `"disk" is of type files`) {
		t.Errorf("error %v, want that prefix is for another type", err)
	}
}
