package process

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main runs a measurement, which is cancelled by an interrupt, and ends the process if it
// fails.
func Main(name string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
