//go:build unix

package files

import (
	"os"
	"syscall"
)

// toRead does not wait for a writer where a pipe replaced a file.
const toRead = os.O_RDONLY | syscall.O_NONBLOCK
