package suggest

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	keys := []string{"heartbeat", "history", "retry", "listen", "tls"}
	watches := []string{"services", "nodes", "interfaces"}
	for _, c := range []struct {
		word, want string
		valid      []string
	}{
		{"heartbeet", "heartbeat", keys}, {"hartbeat", "heartbeat", keys}, {"Heartbeat", "heartbeat", keys},
		{"heart_beat", "heartbeat", keys}, {"heartbeats", "heartbeat", keys}, {"rerty", "retry", keys},
		{"listne", "listen", keys}, {"tsl", "tls", keys}, {"ssl", "", keys}, {"hist", "", keys}, {"port", "", keys},
		{"", "", keys}, {"x", "", keys},
		{"service", "services", watches}, {"Services", "services", watches}, {"servcies", "services", watches},
		{"node", "nodes", watches}, {"interface", "interfaces", watches}, {"widgets", "", watches},
		{strings.Repeat("services", 100), "", watches}, {"services", "", nil},
		{"b", "a", []string{"c", "a"}},
	} {
		if got := Nearest(c.word, c.valid); got != c.want {
			t.Errorf("Nearest(%.20q) = %q, want %q", c.word, got, c.want)
		}
	}
}

func TestSentence(t *testing.T) {
	for _, c := range []struct {
		word, want string
		valid      []string
	}{
		{"rerty", `did you mean "retry"?`, []string{"retry", "listen"}},
		{"port", "there are listen, retry", []string{"retry", "listen"}},
		{"port", "there are none", nil},
	} {
		if got := Sentence(c.word, c.valid); got != c.want {
			t.Errorf("Sentence(%q, %q) = %q, want %q", c.word, c.valid, got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"ab", "ba", 1},
		{"abc", "ab", 1}, {"abc", "xbc", 1}, {"kitten", "sitting", 3}, {"日本", "日木", 1},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := distance(c.b, c.a); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}
