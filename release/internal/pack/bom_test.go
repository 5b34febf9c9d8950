package pack

import (
	"os"
	"slices"
	"testing"
)

// TestDashboardsPackages: those that the page imports, and what these import.
func TestDashboardsPackages(t *testing.T) {
	lock, err := os.ReadFile("../../../web/dashboard/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := npmPackages(lock)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range packages {
		names = append(names, p.Name)
	}
	want := []string{"@tanstack/react-virtual", "@tanstack/virtual-core", "react", "react-dom", "scheduler", "uplot", "yaml"}
	if !slices.Equal(names, want) {
		t.Errorf("packages %q, want %q", names, want)
	}
	if url := packages[0].PackageURL; url != "pkg:npm/%40tanstack/react-virtual@"+packages[0].Version {
		t.Errorf("package URL %s", url)
	}
}

func TestPackagesWithoutHashAreRefused(t *testing.T) {
	for _, lock := range []string{`{`, `{"packages":{"node_modules/a":{"version":"1.0.0"}}}`, `{"packages":{"node_modules/a":{"integrity":"sha512-AAAA"}}}`} {
		if got, err := npmPackages([]byte(lock)); err == nil {
			t.Errorf("%s: %v, want an error", lock, got)
		}
	}
}
