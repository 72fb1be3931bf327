// Package similar finds the name that a user probably meant.
package similar

// Name returns the candidate that differs least from a name; empty: none is similar.
func Name(name string, candidates []string) string {
	best, least := "", max(2, len(name)/4)+1
	for _, candidate := range candidates {
		if len(name)-len(candidate) >= least {
			continue // the distance is not less: a name of many bytes costs nothing
		}
		if distance := Distance(name, candidate); distance < least {
			best, least = candidate, distance
		}
	}
	return best
}

// Distance returns how many letters to add, drop or change to turn one into the other.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, change)
		}
	}
	return row[len(b)]
}
