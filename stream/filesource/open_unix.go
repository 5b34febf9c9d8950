//go:build unix

package filesource

import (
	"os"
	"syscall"
)

// toRead does not wait for a writer where a pipe replaced a file.
const toRead = os.O_RDONLY | syscall.O_NONBLOCK
