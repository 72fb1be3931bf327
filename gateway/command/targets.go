package command

import (
	"crypto/sha256"
	"slices"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// Targets returns the target set of a command as jobs.proto defines it: the root of a Merkle tree over the sorted,
// distinct names. `names` has at least one element.
func Targets(names []string) *musterv1.Command_Targets {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	level := make([][sha256.Size]byte, len(sorted))
	for i, name := range sorted {
		level[i] = sha256.Sum256(append([]byte{0}, name...))
	}
	for len(level) > 1 {
		above := make([][sha256.Size]byte, 0, (len(level)+1)/2)
		for i := 0; i+1 < len(level); i += 2 {
			pair := append([]byte{1}, level[i][:]...)
			above = append(above, sha256.Sum256(append(pair, level[i+1][:]...)))
		}
		if len(level)%2 == 1 {
			above = append(above, level[len(level)-1])
		}
		level = above
	}
	return &musterv1.Command_Targets{NodesSha256: level[0][:], Count: int64(len(sorted))}
}
