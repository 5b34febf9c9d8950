package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/config"
)

// TestConfigurationsLoad loads the configuration of every example, which says how to serve it.
func TestConfigurationsLoad(t *testing.T) {
	files, err := filepath.Glob("*/watchtide.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no configurations: %v", err)
	}
	for _, file := range files {
		c, err := config.Load(file, config.Environment{})
		if err != nil {
			t.Error(err)
		} else if len(c.Watches) == 0 {
			t.Errorf("%s declares no watch", file)
		}
		readme, err := os.ReadFile(filepath.Join(filepath.Dir(file), "README.md"))
		if err != nil || !strings.Contains(string(readme), "watchtide serve --config watchtide.yaml") {
			t.Errorf("%s: the README does not say how to serve it (%v)", filepath.Dir(file), err)
		}
	}
}
