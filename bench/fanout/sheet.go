package main

import (
	"fmt"
	"slices"
)

// sheet holds the results: for each server and figure a number for each run.
type sheet map[entry][]float64

type entry struct{ server, figure string }

func (s sheet) add(server, figure string, value float64) {
	e := entry{server, figure}
	s[e] = append(s[e], value)
}

// median returns false if there are no results.
func (s sheet) median(server, figure string) (float64, bool) {
	seen := slices.Sorted(slices.Values(s[entry{server, figure}]))
	if len(seen) == 0 {
		return 0, false
	}
	return seen[len(seen)/2], true
}

// spread is the smallest and the largest.
func (s sheet) spread(server, figure string) (least, most float64) {
	seen := s[entry{server, figure}]
	if len(seen) == 0 {
		return 0, 0
	}
	return slices.Min(seen), slices.Max(seen)
}

// text is a median with its spread, or a dash.
func (s sheet) text(server, figure, format string) string {
	m, ok := s.median(server, figure)
	if !ok {
		return "–"
	}
	text := fmt.Sprintf(format, m)
	least, most := s.spread(server, figure)
	if a, b := fmt.Sprintf(format, least), fmt.Sprintf(format, most); a != b {
		text += " (" + a + "…" + b + ")"
	}
	return text
}
