package pack

import (
	"strings"
	"testing"
)

func TestVersionOfTheRelease(t *testing.T) {
	text := []byte(`{ "name": "@watchtide/client", "version": "0.0.0", "files": ["dist"], "devDependencies": { "x": "0.0.0" } }`)
	for version, want := range map[string]string{
		"1.2.3":                         "1.2.3",
		"2.0.0-rc.1":                    "2.0.0-rc.1",
		"1.2.4-dev.14+g0123456789ab":    "1.2.4-dev.14",
		"0.0.0-dev+g0123456789ab.dirty": "0.0.0-dev",
	} {
		m, got, err := NPMPackage{Version: version}.versioned(text)
		if err != nil || m.Name != "@watchtide/client" || !strings.Contains(string(got), `"version": "`+want+`", "files"`) || !strings.Contains(string(got), `"x": "0.0.0"`) {
			t.Errorf("%s: %s, %v, want version %s and nothing else changed", version, got, err, want)
		}
	}
}

func TestPackageWithoutAVersion(t *testing.T) {
	for _, text := range []string{`{}`, `{ "version":"0.0.0" }`, `{ "version": "1.0.0", "x": { "version": "1.0.0" } }`, `[`} {
		if _, got, err := (NPMPackage{Version: "1.2.3"}).versioned([]byte(text)); err == nil {
			t.Errorf("%s: %s, want an error", text, got)
		}
	}
}
