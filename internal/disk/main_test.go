package disk

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(openedByChild); path != "" {
		holdOpen(path)
	}
	goleak.VerifyTestMain(m)
}
