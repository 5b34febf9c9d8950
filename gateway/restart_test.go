package gateway

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/watchtide/watchtide/internal/source/files"
	"github.com/watchtide/watchtide/stream/watch"
)

// revokedIn makes the watch of revocations one of the files in a directory.
func revokedIn(t *testing.T, dir string) func(*Config) {
	return func(c *Config) {
		source, err := files.New(files.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		w, err := c.Registry.Add(watch.Config{Name: "revocations", SourceName: "disk", Source: source})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Prime(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Access.Revoked = "revocations"
	}
}

// TestRevocationsSurviveARestart, since their source does.
func TestRevocationsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	before := newDoorRig(t, false, revokedIn(t, dir))
	if got := before.who(bearer(before.ann)); got != "token ann" {
		t.Fatal(got)
	}
	if err := os.Mkdir(filepath.Join(dir, "token"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "token", "ann.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	after := newDoorRig(t, false, revokedIn(t, dir))
	if got := after.who(bearer(after.ann)); got != "401 Unauthorized" {
		t.Errorf("after a restart: %s", got)
	}
	if got := after.who(bearer(after.ci)); got != "token ci" {
		t.Errorf("somebody else: %s", got)
	}
}
