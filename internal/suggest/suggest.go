// Package suggest finds the valid word most similar to a misspelled one.
package suggest

import (
	"fmt"
	"slices"
	"strings"
)

// Sentence ends a message about an unknown word: with the nearest valid word, or with
// all of them if none is near.
func Sentence(word string, valid []string) string {
	if near := Nearest(word, valid); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(valid) == 0 {
		return "there are none"
	}
	return "there are " + strings.Join(slices.Sorted(slices.Values(valid)), ", ")
}

// Nearest returns the valid word with the fewest typing errors between it and word,
// and the first by name of several. It returns "" if even that one has more errors
// than a third of its length, where one error is always forgiven. Case is ignored.
func Nearest(word string, valid []string) string {
	best, fewest := "", longestCompared+1
	for _, v := range slices.Sorted(slices.Values(valid)) {
		if d := distance(strings.ToLower(word), strings.ToLower(v)); d < fewest {
			best, fewest = v, d
		}
	}
	if fewest > max(1, len(best)/3) {
		return ""
	}
	return best
}

// longestCompared bounds the work of distance, in bytes, since words come from
// requests. No valid word is longer.
const longestCompared = 64

// distance counts the letters to add, remove, replace or swap with their neighbour to
// turn a into b (optimal string alignment distance). For text longer than
// longestCompared it returns the longer length.
func distance(a, b string) int {
	if longer := max(len(a), len(b)); longer > longestCompared {
		return longer
	}
	s, t := []rune(a), []rune(b)
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
