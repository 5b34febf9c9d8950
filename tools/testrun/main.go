// Command testrun runs go test, and tests a few kinds of failures a second time.
//
//	testrun [-dir DIR] [-report FILE] -- FLAG... -- PACKAGE...
//	testrun -summary FILE
//
// The first form runs go test with these flags and packages, and prints what go
// test prints without -v. A package in which the race detector itself crashed, and no
// test failed, is tested again with one processor: goroutines of a testing/synctest
// bubble that read expired timers at the same time share one context of the detector
// (runtime.timers.raceCtx), which only one thread may use. Failed tests that use a real
// server, or that say with the directive //testrun:again that they depend on the time
// that other processes take, are run once more alone. If they pass, they are reported as
// flaky, with the seed of the shuffle. No other test is run again: a property, a history
// or a checker that fails has found something.
//
// A report has a line of JSON for each test and each package; see record. The second
// form prints what was slow in it, what was tried twice, and how many tests passed.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	dir := flag.String("dir", ".", "the `folder` of the module to test")
	report := flag.String("report", "", "append the results to this `file`")
	summary := flag.String("summary", "", "print what stands in this `file`, and run nothing")
	flag.Parse()
	if *summary != "" {
		exitOn(printSummary(os.Stdout, *summary))
		return
	}
	flags, packages, ok := cut(flag.Args())
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: testrun [-dir DIR] [-report FILE] -- FLAG... -- PACKAGE...\n       testrun -summary FILE")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := &runner{ctx: ctx, dir: *dir, flags: flags, out: os.Stdout}
	passed := r.all(packages)
	if *report != "" {
		exitOn(appendRecords(*report, r.records))
	}
	if !passed {
		os.Exit(1)
	}
}

// cut splits the arguments at "--".
func cut(args []string) (flags, packages []string, ok bool) {
	i := slices.Index(args, "--")
	if i < 0 || i == len(args)-1 {
		return nil, nil, false
	}
	return args[:i], args[i+1:], true
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
}

// runner runs go test. Owned by the goroutine of main.
type runner struct {
	ctx     context.Context
	dir     string
	flags   []string
	out     *os.File
	records []record
}

// all tests the packages, and again what may be tested again; whether everything passed.
func (r *runner) all(packages []string) bool {
	results, clean := r.run(r.flags, packages)
	// go test itself may fail, before any package does.
	passed := clean || slices.ContainsFunc(results, func(p *pkg) bool { return p.status == "fail" })
	for _, p := range results {
		if p.status != "fail" {
			r.record(p, "")
			continue
		}
		again, why := r.again(p)
		passed = passed && again
		r.record(p, why)
	}
	return passed
}

// again tests a failed package again, if its failures are of a kind that allows it:
// whether it passed, and what the failures were then.
func (r *runner) again(p *pkg) (passed bool, why string) {
	switch {
	case p.crashed():
		fmt.Fprintf(r.out, "testrun: the race detector crashed in %s: a second try with one processor\n", p.name)
		_, passed = r.run(slices.Concat(r.flags, []string{"-cpu", "1"}), []string{p.name})
		why = "the race detector crashed"
	case p.onlyTests():
		names := p.failed()
		for _, name := range names {
			if !r.repeatable(p.name, name) {
				return false, ""
			}
		}
		fmt.Fprintf(r.out, "testrun: %s failed in %s: a second try alone\n", strings.Join(names, ", "), p.name)
		_, passed = r.run(slices.Concat(r.flags, []string{"-p", "1", "-run", "^(" + strings.Join(names, "|") + ")$"}), []string{p.name})
		why = "passed alone, with the seed " + p.seed
	}
	if !passed {
		why = ""
	}
	return passed, why
}

// run runs go test once. The results are in the order in which the packages ended;
// clean is the verdict of go test itself.
func (r *runner) run(flags, packages []string) (results []*pkg, clean bool) {
	args := slices.Concat([]string{"test", "-json"}, flags, packages)
	cmd := exec.CommandContext(r.ctx, goProgram(), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Dir, cmd.Stderr = r.dir, os.Stderr
	stdout, err := cmd.StdoutPipe()
	exitOn(err)
	exitOn(cmd.Start())
	results = read(stdout, r.out)
	return results, cmd.Wait() == nil
}

// goProgram is the go command: $GO, or the one of the PATH.
func goProgram() string { return cmp.Or(os.Getenv("GO"), "go") }
