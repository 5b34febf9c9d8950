package terminal

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"
)

// hostile has characters that terminals interpret: ESC, BEL, DEL, C1 as a
// character, marks that change the direction, and an invisible tag.
const hostile = "\x1b]0;owned\x07\x7f\u009b31m\u202ek\u2066\U000e0041"

func FuzzEscaped(f *testing.F) {
	f.Add([]byte(hostile))
	f.Add([]byte("{\"a\":\t\"\u00e9\u4e16 \U0001f600\"}\r\n"))
	f.Add([]byte("\x9b31m\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := Escaped(text)
		for _, r := range string(got) {
			if r != '\n' && r != '\t' && !unicode.IsGraphic(r) {
				t.Errorf("%q has %U", got, r)
			}
		}
		if !bytes.Equal(Escaped(got), got) {
			t.Errorf("%q is escaped again", got)
		}
		var before, after any
		if json.Unmarshal(text, &before) != nil {
			return
		}
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		x, _ := json.Marshal(before)
		y, _ := json.Marshal(after)
		if !bytes.Equal(x, y) {
			t.Errorf("%q means %s, was %s", got, y, x)
		}
	})
}
