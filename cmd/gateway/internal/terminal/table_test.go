package terminal

import (
	"strings"
	"testing"
	"unicode"
)

func draw(t *Table, width int, keysAndValues ...string) string {
	var rows []Row
	for i := 0; i < len(keysAndValues); i += 2 {
		rows = append(rows, Row{keysAndValues[i], []byte(keysAndValues[i+1])})
	}
	return strings.Join(t.Draw(rows, width), "\n")
}

func TestDraw(t *testing.T) {
	for name, c := range map[string]struct {
		width int
		rows  []string
		want  string
	}{
		"nothing": {20, nil, "KEY"},
		"fields in the order of the value": {60,
			[]string{"1", `{"name":"init","pid":1,"cpu":0.5}`, "42", `{"name":"bash","pid":42,"cpu":12.25}`}, `
KEY  NAME  PID  CPU
1    init  1    0.5
42   bash  42   12.25`},
		"the most common fields first": {60,
			[]string{"a", `{"rare":1,"x":2}`, "b", `{"x":3}`}, `
KEY  X  RARE
a    2  1
b    3`},
		"only what fits": {14,
			[]string{"a", `{"one":1,"two":2,"three":3}`}, `
KEY  ONE  TWO
a    1    2`},
		"values that are not objects": {60,
			[]string{"a", `"text"`, "b", `12345678901234567890`, "c", `[1,{"x":2}]`, "d", `null`}, `
KEY  VALUE
a    text
b    12345678901234567890
c    [1,{"x":2}]
d    null`},
		"nested values": {60, []string{"a", `{"o":{"x":1},"l":[1,2],"s":"","t":true}`}, `
KEY  O        L      S  T
a    {"x":1}  [1,2]     true`},
		"wide characters": {60, []string{"日本", `{"x":"é"}`, "ab", `{"x":"b"}`}, `
KEY   X
日本  é
ab    b`},
		"characters that are one": {60, []string{"🇩🇪", `{"x":"👍🏽"}`, "e\u0301", `{"x":"b"}`}, `
KEY  X
🇩🇪   👍🏽
é    b`},
		"too narrow": {6, []string{"abcdefgh", `{"x":1}`}, `
KEY  …
abcde…`},
		"terminal control characters": {60, []string{"a\x1b[2Jb", `{"x\u001b[31m":"1\r\n2\u202e3\u2028\u0000"}`}, `
KEY     X·[31M
a·[2Jb  1··2·3··`},
		"broken JSON": {60, []string{"a", `{"x":1,`, "b", ``}, `
KEY  X  VALUE
a    1
b`},
		"a field twice": {60, []string{"a", `{"x":1,"x":2}`}, `
KEY  X
a    2`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := draw(NewTable(), c.width, c.rows...); got != strings.TrimPrefix(c.want, "\n") {
				t.Errorf("got\n%s\nwant%s", got, c.want)
			}
		})
	}
}

func TestColumnsStandStillWhileValuesChange(t *testing.T) {
	tab := NewTable()
	draw(tab, 60, "a", `{"x":"long value","y":1}`)
	const want = "KEY  X           Y\na    -           1"
	if got := draw(tab, 60, "a", `{"x":"-","y":1}`); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := draw(tab, 59, "a", `{"x":"-","y":1}`); got != "KEY  X  Y\na    -  1" {
		t.Errorf("on a terminal of another width:\n%s", got)
	}
}

func TestLongCellsAreCut(t *testing.T) {
	got := draw(NewTable(), 200, strings.Repeat("k", 60), `{"x":"`+strings.Repeat("v", 60)+`"}`)
	last := strings.Split(got, "\n")[1]
	if want := strings.Repeat("k", widestKey-1) + "…  " + strings.Repeat("v", widestField-1) + "…"; last != want {
		t.Errorf("got\n%s\nwant\n%s", last, want)
	}
}

// FuzzDraw looks for a row that leaves its line, or moves the cursor.
func FuzzDraw(f *testing.F) {
	f.Add("key", `{"a":1,"b":"\u001b[2J"}`, 20)
	f.Add("\x1b[1m日本", `["x"]`, 7)
	f.Add("", `{"":{}}`, 0)
	f.Fuzz(func(t *testing.T, key, value string, width int) {
		width = max(0, min(width, 300))
		for _, line := range NewTable().Draw([]Row{{key, []byte(value)}}, width) {
			if n := Width(line); n > width {
				t.Errorf("%q takes %d columns of %d", line, n, width)
			}
			for _, r := range line {
				if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
					t.Errorf("%q holds %U", line, r)
				}
			}
		}
	})
}
