package host

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asChild makes this test binary a process that prints "up" and then does
// nothing until its standard input is closed.
const asChild = "HOSTSOURCE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		fmt.Println("up")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	goleak.VerifyTestMain(m)
}
