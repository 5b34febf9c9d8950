package terminal

import (
	"cmp"
	"slices"
	"strings"
)

const (
	gap         = "  "
	widestKey   = 48
	widestField = 32
)

// Row is one resource.
type Row struct {
	Key   string
	Value []byte // JSON
}

// Table draws rows. It remembers how wide its columns have been, so that they
// do not move while values change.
//
// Owned by one goroutine.
type Table struct {
	widths map[string]int
	width  int
}

// NewTable returns a table that has drawn nothing yet.
func NewTable() *Table { return &Table{widths: map[string]int{}} }

// Draw returns a header and a line for each row, none wider than width.
func (t *Table) Draw(rows []Row, width int) []string {
	if width != t.width {
		clear(t.widths)
		t.width = width
	}
	parsed := make([]line, len(rows))
	for i, r := range rows {
		parsed[i] = newLine(r)
	}
	fields := commonFields(parsed)
	t.widen(parsed, fields)
	shown := t.fitting(fields, width)
	out := []string{t.header(shown, width)}
	for _, l := range parsed {
		out = append(out, t.row(l, shown, width))
	}
	return out
}

// line is a parsed row.
type line struct {
	key   string
	cells map[string]string
	names []string // in the order of the value
}

func newLine(r Row) line {
	l := line{key: printable(r.Key), cells: map[string]string{}}
	for _, c := range cells(r.Value) {
		if _, twice := l.cells[c.name]; !twice {
			l.names = append(l.names, c.name)
		}
		l.cells[c.name] = c.text
	}
	return l
}

// commonFields returns the fields, those of the most lines first, then in
// order of first appearance.
func commonFields(lines []line) []string {
	var names []string
	count := map[string]int{}
	for _, l := range lines {
		for _, name := range l.names {
			if count[name]++; count[name] == 1 {
				names = append(names, name)
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(count[b], count[a]) })
	return names
}

// keyColumn cannot be the name of a field.
const keyColumn = "\x00key"

func (t *Table) widen(lines []line, fields []string) {
	t.atLeast(keyColumn, len("KEY"), widestKey)
	for _, name := range fields {
		t.atLeast(name, Width(name), widestField)
	}
	for _, l := range lines {
		t.atLeast(keyColumn, Width(l.key), widestKey)
		for name, text := range l.cells {
			t.atLeast(name, Width(text), widestField)
		}
	}
}

func (t *Table) atLeast(name string, n, most int) {
	t.widths[name] = max(t.widths[name], min(n, most))
}

// fitting returns the fields that fit beside the key, in their order; at least
// the first.
func (t *Table) fitting(fields []string, width int) []string {
	left := width - t.widths[keyColumn]
	var out []string
	for _, name := range fields {
		left -= len(gap) + t.widths[name]
		if left < 0 && len(out) > 0 {
			break
		}
		out = append(out, name)
	}
	return out
}

func (t *Table) header(shown []string, width int) string {
	parts := []string{fit("KEY", t.widths[keyColumn])}
	for _, name := range shown {
		parts = append(parts, fit(strings.ToUpper(name), t.widths[name]))
	}
	return clip(parts, width)
}

func (t *Table) row(l line, shown []string, width int) string {
	parts := []string{fit(l.key, t.widths[keyColumn])}
	for _, name := range shown {
		parts = append(parts, fit(l.cells[name], t.widths[name]))
	}
	return clip(parts, width)
}

func clip(parts []string, width int) string {
	return cut(strings.TrimRight(strings.Join(parts, gap), " "), width)
}
