package main

import (
	"fmt"
	"io"

	"github.com/watchtide/watchtide/bench/machine"
)

// row is a line of the table.
type row struct {
	what, target, measured string
	// reached is nil if there is no target.
	reached *bool
}

// add adds a line without a target.
func (b *bench) add(what, format string, figures ...any) {
	b.rows = append(b.rows, row{what: what, target: "–", measured: fmt.Sprintf(format, figures...)})
}

// judge adds a line with a target.
func (b *bench) judge(what, target string, reached bool, format string, figures ...any) {
	b.rows = append(b.rows, row{what: what, target: target, measured: fmt.Sprintf(format, figures...), reached: &reached})
}

// print prints the table.
func (b *bench) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n| measurement | target | measured | |\n|---|---|---:|---|\n", machine.Describe())
	for _, r := range b.rows {
		verdict := ""
		if r.reached != nil {
			verdict = "**missed**"
			if *r.reached {
				verdict = "reached"
			}
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.what, r.target, r.measured, verdict)
	}
}
