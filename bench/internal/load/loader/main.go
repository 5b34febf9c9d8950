// Command loader is the load generator of several benches: it opens the
// connections and counts the arriving events, on orders from package child.
package main

import (
	"fmt"
	"os"

	"github.com/watchtide/watchtide/bench/internal/load/child"
)

func main() {
	if err := child.Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "loader:", err)
		os.Exit(1)
	}
}
