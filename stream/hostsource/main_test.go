package hostsource

import (
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asChild makes this test binary a process that does nothing until its standard
// input is closed.
const asChild = "HOSTSOURCE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	goleak.VerifyTestMain(m)
}
