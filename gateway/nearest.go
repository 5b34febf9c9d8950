package gateway

import "strings"

// nearest returns the candidate that name most likely meant, or "" if none is near:
// at most a third of its letters may differ, but always at least one.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if d := editDistance(strings.ToLower(name), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// longestCompared bounds the work of editDistance, since names come from requests. No
// watch and no parameter has a longer name.
const longestCompared = 64

// editDistance counts the bytes to insert, remove, replace or swap with their
// neighbour to turn a into b (optimal string alignment distance). For text longer
// than longestCompared it returns the longer length.
func editDistance(a, b string) int {
	if max(len(a), len(b)) > longestCompared {
		return max(len(a), len(b))
	}
	var rows [3][longestCompared + 1]int // the row before the last, the last, and this one
	for j := range len(b) + 1 {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		rows[2][0] = i
		for j := 1; j <= len(b); j++ {
			rows[2][j] = min(rows[1][j]+1, rows[2][j-1]+1, rows[1][j-1]+differ(a[i-1], b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[2][j] = min(rows[2][j], rows[0][j-2]+1)
			}
		}
		rows[0], rows[1] = rows[1], rows[2]
	}
	return rows[1][len(b)]
}

func differ(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
