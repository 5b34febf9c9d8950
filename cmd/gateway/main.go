// Command gateway serves watches, follows them and reads them.
package main

import (
	"os"

	"github.com/watchtide/watchtide/cmd/gateway/internal/commands"
)

// version is set when a release is linked: -ldflags "-X main.version=1.2.3".
var version string

func main() { os.Exit(commands.Main(version)) }
