// Command bareserver is the upper limit for a server that sends each event to
// each subscriber: one thread that calls write. It parses no request, stores
// nothing, and encodes an event once. It ends with its input.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	batch := flag.Bool("batch", false, "give all events of a publish to one write")
	flag.Parse()
	if err := run(*batch); err != nil {
		fmt.Fprintln(os.Stderr, "bareserver:", err)
		os.Exit(1)
	}
}
