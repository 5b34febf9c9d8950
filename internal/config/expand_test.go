package config

import "testing"

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
