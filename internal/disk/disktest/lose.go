// Package disktest has what a loss of power leaves of the files of package disk, for tests.
package disktest

import "math/rand/v2"

// Phase is what was being written when the power was lost.
type Phase string

// The phases of a transaction. Between them the disk is synced, which a [Recording] finds out.
const (
	Data Phase = "data" // its pages
	Meta Phase = "meta" // the page that says where they are
)

// Lose returns the bytes of a file whose transaction was cut off in a phase. The disk may have written any
// of the sectors that were given to it, in any order, and of a meta page any part.
func Lose(before, after []byte, random *rand.Rand, phase Phase) []byte {
	const sector, metas = 512, 2 * 4096
	lost := make([]byte, len(after))
	copy(lost, before)
	if phase == Data && random.IntN(2) == 0 {
		lost = lost[:min(len(before), len(lost))] // the file has not grown yet
	}
	for at := metas; at+sector <= len(lost); at += sector {
		if phase == Meta || random.IntN(2) == 0 {
			copy(lost[at:at+sector], after[at:at+sector])
		}
	}
	if phase == Meta {
		for at := 0; at < metas; at += 64 { // worse than any disk
			if random.IntN(2) == 0 {
				copy(lost[at:at+64], after[at:at+64])
			}
		}
	}
	return lost
}
