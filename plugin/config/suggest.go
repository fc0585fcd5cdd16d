package config

import (
	"fmt"
	"strings"
)

// suggest returns the candidate that was probably meant, or all candidates if they are few.
func suggest(word string, candidates []string) string {
	best, distance := "", len(word)/3+2
	for _, candidate := range candidates {
		if d := edits(strings.ToLower(word), strings.ToLower(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	const few = 12
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", best)
	case len(candidates) > 0 && len(candidates) <= few:
		return "; known are " + strings.Join(candidates, ", ")
	}
	return ""
}

// edits returns the number of letters to insert, delete or replace (Levenshtein distance).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
