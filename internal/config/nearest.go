package config

import (
	"fmt"
	"slices"
	"strings"
)

// suggest ends a sentence about an unknown word: with the nearest valid word,
// or with all of them if none is near.
func suggest(word string, right []string) string {
	if near, ok := nearest(word, right); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(right) == 0 {
		return "there are none"
	}
	return "there are " + strings.Join(slices.Sorted(slices.Values(right)), ", ")
}

// nearest returns the valid word with the fewest typing errors between it and
// word: at most a third of its length, and the first by name of several.
func nearest(word string, right []string) (string, bool) {
	best, fewest := "", 1<<30
	for _, r := range slices.Sorted(slices.Values(right)) {
		if d := typos(strings.ToLower(word), strings.ToLower(r)); d < fewest {
			best, fewest = r, d
		}
	}
	return best, best != "" && fewest <= max(1, len(best)/3)
}

// typos counts the letters to add, drop, replace or swap with their neighbour
// to turn a into b (optimal string alignment distance).
func typos(a, b string) int {
	s, t := []rune(a), []rune(b)
	if len(s) > 64 {
		return len(s) // no valid word is that long
	}
	before, last, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := range s {
		row[0] = i + 1
		for j := range t {
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+differ(s[i], t[j]))
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(t)]
}

func differ(a, b rune) int {
	if a == b {
		return 0
	}
	return 1
}
