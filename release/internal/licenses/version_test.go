package licenses

import (
	"testing"

	"github.com/Masterminds/semver/v3"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

func TestVersionOfACommit(t *testing.T) {
	for _, c := range []struct {
		described string
		changed   bool
		want      string
	}{
		{"", false, "0.0.0-dev+g0123456789ab"},
		{"", true, "0.0.0-dev+g0123456789ab.dirty"},
		{"v1.2.3-0-g0123456", false, "1.2.3"},
		{"v1.2.3-0-g0123456", true, "1.2.4-dev.0+g0123456789ab.dirty"},
		{"v1.2.9-14-g0123456", false, "1.2.10-dev.14+g0123456789ab"},
		{"v2.0.0-rc.1-0-g0123456", false, "2.0.0-rc.1"},
		{"v2.0.0-rc.1-3-g0123456", false, "2.0.0-rc.1.dev.3+g0123456789ab"},
	} {
		got, err := semantic(c.described, commit, c.changed)
		if err != nil || got != c.want {
			t.Errorf("%q, changed %v: %q, %v, want %q", c.described, c.changed, got, err, c.want)
		}
	}
	for _, tag := range []string{"v1-0-g0123456", "v1.2-3-g0123456", "v1.2.3"} {
		if got, err := semantic(tag, commit, false); err == nil {
			t.Errorf("%q: %q, want an error", tag, got)
		}
	}
}

// TestVersionsAreInOrder: packages of later commits are upgrades.
func TestVersionsAreInOrder(t *testing.T) {
	var last *semver.Version
	for _, described := range []string{"", "v1.2.3-0-gab", "v1.2.3-2-gab", "v1.2.3-10-gab", "v1.2.4-rc.1-0-gab", "v1.2.4-rc.1-2-gab", "v1.2.4-rc.2-0-gab", "v1.2.4-0-gab"} {
		text, err := semantic(described, commit, false)
		if err != nil {
			t.Fatal(err)
		}
		v, err := semver.StrictNewVersion(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if last != nil && !v.GreaterThan(last) {
			t.Errorf("%v of %q is not after %v", v, described, last)
		}
		last = v
	}
}
