// Command compile builds the modules in some folders as the tests do that start them, so that
// the tests find their servers built. It is what make servers runs.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

func main() {
	for _, name := range os.Args[1:] {
		if err := compile(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func compile(name string) error {
	module, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := realserver.Compile(module); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "==> %s: compiled in %.0f s\n", name, time.Since(began).Seconds())
	return nil
}
