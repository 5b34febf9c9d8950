package process

import (
	"strings"
	"testing"
)

// TestVerdicts: a missed target is shown, and a line without a target has no verdict.
func TestVerdicts(t *testing.T) {
	var figures Table
	figures.Add("first", "%d µs", 1)
	figures.Judge("second", "≤ 2", true, "2")
	figures.Judge("third", "≤ 2", false, "3")
	var out strings.Builder
	figures.Print(&out)
	for _, want := range []string{"| first | – | 1 µs |  |\n", "| second | ≤ 2 | 2 | reached |\n", "| third | ≤ 2 | 3 | **missed** |\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s\nwant %s", out.String(), want)
		}
	}
}
