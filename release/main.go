// Command release makes everything that a release publishes, in one folder, and publishes nothing.
// The same commit and version of Go make the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/watchtide/watchtide/release/internal/licenses"
)

const everywhere = "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	folder := flags.String("source", "..", "working `folder` of the repository")
	into := flags.String("out", "../dist/release", "`folder` to write to; what is in it is removed")
	names := flags.String("targets", everywhere, "`platforms` to make programs for, as OS/ARCH")
	who := flags.String("maintainer", "", "`name and mail address` of whoever answers for the packages, as \"Name <name@example.org>\"; a tagged version needs one")
	check := flags.Bool("check", false, "make everything a second time, in another folder, and fail if any byte differs")
	cached := flags.Bool("cached", false, "with -check, let the second time use what the go command has cached")
	program := flags.String("licenses", "", "print the licence texts for a `program` of this platform that was compiled from the repository, and do nothing else")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *program != "" {
		return printLicenses(ctx, *folder, *program, out)
	}
	targets, err := parseTargets(*names)
	if err != nil {
		return err
	}
	from, err := licenses.ReadSource(ctx, *folder)
	if err != nil {
		return err
	}
	maintainer, err := parseMaintainer(*who, from)
	if err != nil {
		return err
	}
	made, err := makeAll(ctx, from, maintainer, targets)
	if err != nil {
		return err
	}
	if *check {
		if err := compareWithAnother(ctx, from, maintainer, targets, made, !*cached); err != nil {
			return err
		}
	}
	if err := write(*into, made); err != nil {
		return err
	}
	return list(out, from, *into, made, *check)
}

// printLicenses writes the licence texts for a program of this platform. The Dockerfile uses it.
func printLicenses(ctx context.Context, folder, program string, out io.Writer) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	text, err := licenses.Text(ctx, licenses.Source{Folder: folder}, licenses.Target{OS: runtime.GOOS, Arch: runtime.GOARCH}, binary)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

func parseTargets(names string) ([]licenses.Target, error) {
	var targets []licenses.Target
	for _, name := range strings.Fields(names) {
		system, arch, _ := strings.Cut(name, "/")
		if !strings.Contains(" "+everywhere+" ", " "+name+" ") {
			return nil, fmt.Errorf("target %q: want some of %s", name, everywhere)
		}
		targets = append(targets, licenses.Target{OS: system, Arch: arch})
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("no targets: want some of %s", everywhere)
	}
	return targets, nil
}

// write replaces a folder with these files, and their check sums.
func write(folder string, made []product) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, p := range made {
		if err := os.WriteFile(filepath.Join(folder, p.name), p.data, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", p.sum(), p.name)
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

func list(out io.Writer, from licenses.Source, folder string, made []product, checked bool) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "watchtide %s, commit %s, compiled with %s, in %s; nothing is published\n", from.Version, from.Commit, runtime.Version(), folder)
	for _, p := range made {
		fmt.Fprintf(&text, "%11d  %s  %s\n", len(p.data), p.sum(), p.name)
	}
	if checked {
		fmt.Fprintf(&text, "made twice, in two folders: the same bytes\n")
	}
	_, err = io.WriteString(out, text.String())
	return err
}
