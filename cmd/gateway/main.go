// Command gateway serves watches, follows them and reads them.
package main

import (
	"os"

	"github.com/watchtide/watchtide/cmd/gateway/internal/commands"
	// Where the system has no certificate authorities, as in an empty image, these are used.
	_ "golang.org/x/crypto/x509roots/fallback"
)

// version and commit are set when a release is linked: -ldflags "-X main.version=1.2.3
// -X main.commit=…".
var version, commit string

func main() { os.Exit(commands.Main(version, commit)) }
