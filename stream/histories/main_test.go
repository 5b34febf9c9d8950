package histories

import (
	"os"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

// TestMain delays garbage collection: a history is small, and most of what it
// allocates is soon gone.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}
