package config

import "testing"

func TestNearest(t *testing.T) {
	words := []string{"heartbeat", "history", "retry", "listen", "tls"}
	for word, want := range map[string]string{
		"heartbeet": "heartbeat", "hartbeat": "heartbeat", "Heartbeat": "heartbeat", "heart_beat": "heartbeat",
		"rerty": "retry", "listne": "listen", "tsl": "tls", "ssl": "", "hist": "", "port": "", "": "",
		"heartbeats": "heartbeat", "x": "",
	} {
		got, ok := nearest(word, words)
		if ok != (want != "") || ok && got != want {
			t.Errorf("nearest(%q) = %q, %v, want %q", word, got, ok, want)
		}
	}
}

func TestTypos(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1},
		{"abc", "ab", 1}, {"abc", "xbc", 1}, {"kitten", "sitting", 3}, {"日本", "日木", 1},
	} {
		if got := typos(c.a, c.b); got != c.want {
			t.Errorf("typos(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := typos(c.b, c.a); got != c.want {
			t.Errorf("typos(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestExpand(t *testing.T) {
	env := fakeEnvironment().Getenv
	for text, want := range map[string]string{
		"": "", "plain": "plain", "${HOST}": "127.0.0.1", "a${N}b${N}": "a12b12", "${EMPTY}": "",
		"$${HOST}": "${HOST}", "$$${HOST}": "$${HOST}", "$HOST": "$HOST", "$": "$", "}": "}", "$$": "$$", "{}": "{}",
	} {
		if got, message := expand(text, env); got != want || message != "" {
			t.Errorf("expand(%q) = %q, %q, want %q", text, got, message, want)
		}
	}
	for _, text := range []string{"${", "${}", "${HOST", "${a-b}", "${1A}", "${ HOST }", "${NOT_SET}"} {
		if got, message := expand(text, env); message == "" || got != "" {
			t.Errorf("expand(%q) = %q, want an error", text, got)
		}
	}
}
