//go:build servers

package examples_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFeatureFlags: a release of a commit that changes several flags is one transaction.
func TestFeatureFlags(t *testing.T) {
	needs(t, "git")
	e := copied(t, "feature-flags")
	e.run("git", "init", "--quiet", "--initial-branch=main", "flags")
	e.commit(map[string]string{"checkout": "enabled: true\nshare: 0.1\n", "search": "enabled: true\n", "old": "enabled: false\n"})
	e.run("./release.sh", "flags", "main")
	e.serve()
	lines := e.follow("flags")
	if before, end := await(t, lines, `"end_of_snapshot"`); !strings.Contains(end, `"count":3`) {
		t.Fatalf("the snapshot:\n%s\n%s", strings.Join(before, "\n"), end)
	}
	await(t, lines, `"position"`)

	e.commit(map[string]string{"checkout": "enabled: true\nshare: 0.25\n", "search": "enabled: false\n", "old": ""})
	e.run("./release.sh", "flags", "main")
	changes, _ := await(t, lines, `"position"`)
	want := []string{
		`{"type":"upsert","watch":"flags","key":"checkout","revision":"3","value":{"enabled":true,"share":0.25}}`,
		`{"type":"delete","watch":"flags","key":"old","revision":"3"}`,
		`{"type":"upsert","watch":"flags","key":"search","revision":"3","value":{"enabled":false}}`,
	}
	if !slices.Equal(changes, want) {
		t.Errorf("before the next position came:\n%s", strings.Join(changes, "\n"))
	}

	e.run("./release.sh", "flags", "main~1")
	if changes, _ := await(t, lines, `"position"`); len(changes) != 3 {
		t.Errorf("the roll-back:\n%s", strings.Join(changes, "\n"))
	}
}

// commit writes flags to the repository; one without text is removed.
func (e *example) commit(flags map[string]string) {
	e.t.Helper()
	for name, text := range flags {
		file := filepath.Join(e.dir, "flags", name+".yaml")
		err := os.WriteFile(file, []byte(text), 0o600)
		if text == "" {
			err = os.Remove(file)
		}
		if err != nil {
			e.t.Fatal(err)
		}
	}
	e.run("git", "-C", "flags", "add", "--all")
	e.run("git", "-C", "flags", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "--message=flags")
}
