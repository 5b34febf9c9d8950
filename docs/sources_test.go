package docs_test

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestEverySourceIsInTheIndex: a page of a source is named after its type, shows
// a configuration of that type, and is linked from the table of all sources.
func TestEverySourceIsInTheIndex(t *testing.T) {
	all := pages(t)
	for name, page := range all {
		if path.Dir(name) != "sources" {
			continue
		}
		if !strings.Contains(all["sources.md"], "]("+name+")") {
			t.Errorf("sources.md has no link to %s: make one of the first cell of its row", name)
		}
		kind := strings.TrimSuffix(path.Base(name), ".md")
		shown := regexp.MustCompile(`(?m)\btype: ` + kind + `\b`)
		if !shown.MatchString(strings.Join(blocks(page, "yaml"), "")) {
			t.Errorf("%s shows no configuration of type %s", name, kind)
		}
	}
}
