package process

import (
	"fmt"
	"io"
)

// Table is a list of figures. The zero value is empty. It belongs to one goroutine.
type Table struct{ rows []row }

// row is a line of a table.
type row struct{ what, target, measured, verdict string }

// Add adds a line without a target.
func (t *Table) Add(what, format string, figures ...any) {
	t.rows = append(t.rows, row{what, "–", fmt.Sprintf(format, figures...), ""})
}

// Judge adds a line with a target.
func (t *Table) Judge(what, target string, reached bool, format string, figures ...any) {
	verdict := "**missed**"
	if reached {
		verdict = "reached"
	}
	t.rows = append(t.rows, row{what, target, fmt.Sprintf(format, figures...), verdict})
}

// Print prints a sentence about the machine, and the table. Call it at the end of the
// measurement.
func (t *Table) Print(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n| measurement | target | measured | |\n|---|---|---:|---|\n", Machine())
	for _, r := range t.rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.what, r.target, r.measured, r.verdict)
	}
}
