//go:build !unix

package files

import "os"

const toRead = os.O_RDONLY
