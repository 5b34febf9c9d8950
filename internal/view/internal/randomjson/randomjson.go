// Package randomjson makes JSON text for tests, of the kind that readers disagree about:
// repeated members, escaped names, numbers beyond 2^53, lone surrogates, white space.
package randomjson

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// Names are those of the members, few enough to be met again.
var Names = []string{"a", "b", "c", "labels", "x.y", "é", "e\u0301", "\x00", ""}

// Texts are the strings.
var Texts = []string{"", "a", "b", "1", "true", "null", "eu-1", "é", "e\u0301", "\x00", "\u2028", "😀", `"`, `\`}

// Numbers are those that a double, an int and a uint hold differently.
var Numbers = []string{
	"0", "-0", "-0.0", "0e0", "1", "1.0", "1e0", "10e-1", "100", "1e2", "1E+2", "1.5", "-1", "0.1", "5e-324", "1e400", "-1e400",
	"9007199254740991", "9007199254740992", "9007199254740993", "9007199254740993.0", "9007199254740992e0",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
	"18446744073709551615", "18446744073709551616", "1e19",
}

// Value draws JSON text.
func Value(t *rapid.T) string {
	var b strings.Builder
	value(t, &b, 4)
	return b.String()
}

func value(t *rapid.T, b *strings.Builder, depth int) {
	space(t, b)
	defer space(t, b)
	kinds := 9
	if depth == 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		b.WriteString("null")
	case 1:
		b.WriteString(rapid.SampledFrom([]string{"true", "false"}).Draw(t, "truth"))
	case 2, 3:
		b.WriteString(rapid.SampledFrom(Numbers).Draw(t, "number"))
	case 4:
		text(t, b, rapid.SampledFrom(Texts).Draw(t, "text"))
	case 5:
		b.WriteString(rapid.SampledFrom([]string{`"\ud800"`, `"\udc00\ud800"`, `"\ud83d\ude00"`, `"\u0000"`, `"\/"`}).Draw(t, "escaped"))
	case 6:
		b.WriteByte('[')
		for i := range rapid.IntRange(0, 3).Draw(t, "elements") {
			if i > 0 {
				b.WriteByte(',')
			}
			value(t, b, depth-1)
		}
		b.WriteByte(']')
	default:
		object(t, b, depth)
	}
}

func object(t *rapid.T, b *strings.Builder, depth int) {
	b.WriteByte('{')
	for i := range rapid.IntRange(0, 4).Draw(t, "members") {
		if i > 0 {
			b.WriteByte(',')
		}
		space(t, b)
		text(t, b, rapid.SampledFrom(Names).Draw(t, "name"))
		space(t, b)
		b.WriteByte(':')
		value(t, b, depth-1)
	}
	space(t, b)
	b.WriteByte('}')
}

// text writes a string, at times with its first letter escaped.
func text(t *rapid.T, b *strings.Builder, of string) {
	if of != "" && of[0] < 0x80 && rapid.IntRange(0, 4).Draw(t, "escape") == 0 {
		rest, _ := json.Marshal(of[1:])
		fmt.Fprintf(b, `"\u%04x%s`, of[0], rest[1:])
		return
	}
	raw, _ := json.Marshal(of)
	b.Write(raw)
}

func space(t *rapid.T, b *strings.Builder) {
	b.WriteString(rapid.SampledFrom([]string{"", "", "", "", " ", "\t "}).Draw(t, "space"))
}
