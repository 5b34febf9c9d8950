//go:build !unix

package filesource

import "os"

const toRead = os.O_RDONLY
