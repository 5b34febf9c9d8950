package main

import (
	"fmt"
	"os"
	"text/tabwriter"
)

// row is a line of the table.
type row struct {
	attack, measured, figure, bound string
	withstood                       bool
}

// verdict prints the table. It returns an error if the gateway did not withstand everything.
func verdict(rows []row) error {
	failed := 0
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "attack\tmeasured\tfigure\tbound\t")
	for _, r := range rows {
		word := "withstood"
		if !r.withstood {
			word = "FAILED"
			failed++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.attack, r.measured, r.figure, r.bound, word)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d rows failed", failed, len(rows))
	}
	return nil
}
