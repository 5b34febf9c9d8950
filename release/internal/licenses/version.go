package licenses

import (
	"fmt"
	"regexp"
	"strconv"
)

var tagged = regexp.MustCompile(`^v(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?-(\d+)-g[0-9a-f]+$`)

// semantic returns the version of a commit. described is the last tag before it, and how many
// commits ago that was, as git describe --long prints them; empty: there is no tag. A commit after
// a tag comes before the next version that could be tagged.
func semantic(described, commit string, changed bool) (string, error) {
	build := "+g" + commit[:12]
	if changed {
		build += ".dirty"
	}
	if described == "" {
		return "0.0.0-dev" + build, nil
	}
	m := tagged.FindStringSubmatch(described)
	if m == nil {
		return "", fmt.Errorf("no version: tag %q, want v and a semantic version", described)
	}
	major, minor, patch, pre, since := m[1], m[2], m[3], m[4], m[5]
	if since == "0" && !changed {
		return fmt.Sprintf("%s.%s.%s%s", major, minor, patch, pre), nil
	}
	if pre != "" {
		return fmt.Sprintf("%s.%s.%s%s.dev.%s%s", major, minor, patch, pre, since, build), nil
	}
	n, err := strconv.Atoi(patch)
	return fmt.Sprintf("%s.%s.%d-dev.%s%s", major, minor, n+1, since, build), err
}
