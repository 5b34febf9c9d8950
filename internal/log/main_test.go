package log

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// length returns how often, or with how many, a test does something: full, or with
// -short less.
func length(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}
