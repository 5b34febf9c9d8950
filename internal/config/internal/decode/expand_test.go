package decode

import "testing"

func TestExpand(t *testing.T) {
	variables := map[string]string{"HOST": "127.0.0.1", "N": "12", "EMPTY": ""}
	env := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	for text, want := range map[string]string{
		"": "", "plain": "plain", "${HOST}": "127.0.0.1", "a${N}b${N}": "a12b12", "${EMPTY}": "",
		"$${HOST}": "${HOST}", "$$${HOST}": "$${HOST}", "$HOST": "$HOST", "$": "$", "}": "}", "$$": "$$", "{}": "{}",
	} {
		if got, message := Expand(text, env); got != want || message != "" {
			t.Errorf("Expand(%q) = %q, %q, want %q", text, got, message, want)
		}
	}
	for _, text := range []string{"${", "${}", "${HOST", "${a-b}", "${1A}", "${ HOST }", "${NOT_SET}"} {
		if got, message := Expand(text, env); message == "" || got != "" {
			t.Errorf("Expand(%q) = %q, want an error", text, got)
		}
	}
}
