package gateway

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"services", "nodes", "interfaces"}
	for _, test := range []struct{ name, want string }{
		{"service", "services"},
		{"Services", "services"},
		{"servcies", "services"}, // two neighbours swapped
		{"node", "nodes"},
		{"interface", "interfaces"},
		{"x", ""},
		{"", ""},
		{"widgets", ""},
		{strings.Repeat("services", 100), ""},
	} {
		if got := nearest(test.name, names); got != test.want {
			t.Errorf("nearest(%.20q) = %q, want %q", test.name, got, test.want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0},
		{"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1},
	} {
		if got := editDistance(test.a, test.b); got != test.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
