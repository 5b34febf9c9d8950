package store

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(writtenByChild); path != "" {
		writeUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}
