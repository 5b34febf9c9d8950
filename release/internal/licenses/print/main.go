// Command print writes the licence texts for a program of this platform to standard output. The
// Dockerfile uses it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/watchtide/watchtide/release/internal/licenses"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "print:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("print", flag.ContinueOnError)
	folder := flags.String("source", "..", "`folder` of the repository")
	file := flags.String("program", "../bin/watchtide", "`file` of the program, compiled from it for this platform")
	if err := flags.Parse(args); err != nil {
		return err
	}
	program, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	target := licenses.Target{OS: runtime.GOOS, Arch: runtime.GOARCH}
	text, err := licenses.Text(ctx, licenses.Source{Folder: *folder}, target, program)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
