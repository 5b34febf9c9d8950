package stream

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestValues(t *testing.T) {
	for _, c := range []struct {
		raw            string
		any, text, doc string // "": base64
	}{
		{`1.30`, `1.30`, `"1.30"`, `1.30`},
		{`12345678901234567890`, `12345678901234567890`, `"12345678901234567890"`, `12345678901234567890`},
		{`01234`, `"01234"`, `"01234"`, ``},
		{`x`, `"x"`, `"x"`, ``},
		{`"x"`, `"x"`, `"\"x\""`, `"x"`},
		{"{\n\"a\":1}", `{"a":1}`, `"{\n\"a\":1}"`, `{"a":1}`},
		{"\ufeff{}", "\"\ufeff{}\"", "\"\ufeff{}\"", `{}`},
		{"", `""`, `""`, ``},
		{"\xff", ``, ``, ``},
	} {
		for values, want := range map[Values]string{AnyValues: c.any, TextValues: c.text, JSONValues: c.doc, Base64Values: ""} {
			wantEncoding := ""
			if want == "" {
				want, wantEncoding = `"`+base64.StdEncoding.EncodeToString([]byte(c.raw))+`"`, Base64
			}
			if got, encoding := values.Value([]byte(c.raw)); string(got) != want || encoding != wantEncoding {
				t.Errorf("%q as %q: got %s %s, want %s %s", c.raw, values, got, encoding, want, wantEncoding)
			}
		}
	}
	for _, v := range []Values{"yaml", "Text"} {
		if v.Check() == nil {
			t.Errorf("%q is accepted", v)
		}
	}
}

// TestValuesAreBytes: text and base64 tell what the bytes were.
func TestValuesAreBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOf(rapid.Byte()).Draw(t, "raw")
		if rapid.Bool().Draw(t, "text") {
			raw = []byte(rapid.String().Draw(t, "raw text"))
		}
		for _, v := range []Values{TextValues, Base64Values} {
			value, encoding := v.Value(raw)
			var got string
			if err := json.Unmarshal(value, &got); err != nil || !utf8.Valid(value) {
				t.Fatalf("%q as %s: %q is no JSON string: %v", raw, v, value, err)
			}
			if encoding == Base64 {
				decoded, err := base64.StdEncoding.DecodeString(got)
				if err != nil {
					t.Fatal(err)
				}
				got = string(decoded)
			}
			if got != string(raw) {
				t.Errorf("%q as %s: got %q", raw, v, got)
			}
		}
	})
}
