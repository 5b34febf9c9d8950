package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of go test -json. See go doc test2json.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// test is what is known of one test or subtest.
type test struct {
	name    string
	status  string // "", while it runs, or "pass", "fail", "skip"
	seconds float64
	output  strings.Builder
}

// pkg is what is known of one package.
type pkg struct {
	name    string
	status  string
	seconds float64
	seed    string // of the shuffle
	output  strings.Builder
	tests   map[string]*test
	order   []*test
}

// test returns the test of this name.
func (p *pkg) test(name string) *test {
	t := p.tests[name]
	if t == nil {
		t = &test{name: name}
		p.tests[name] = t
		p.order = append(p.order, t)
	}
	return t
}

// read reads the events of go test -json, and prints to out what go test prints
// without -v. It returns the packages in the order in which they ended.
func read(in io.Reader, out io.Writer) []*pkg {
	packages := map[string]*pkg{}
	var ended []*pkg
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			if p := take(line, packages, out); p != nil {
				p.print(out)
				ended = append(ended, p)
			}
		}
		if err != nil {
			return ended
		}
	}
}

// take adds an event to its package. It returns the package if that has ended.
func take(line []byte, packages map[string]*pkg, out io.Writer) *pkg {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Package == "" {
		if e.Action == "build-output" {
			fmt.Fprint(out, e.Output)
		} else if e.Action == "" {
			out.Write(line)
		}
		return nil
	}
	p := packages[e.Package]
	if p == nil {
		p = &pkg{name: e.Package, tests: map[string]*test{}}
		packages[e.Package] = p
	}
	switch {
	case e.Action == "run": // again, if the package starts itself a second time
		p.test(e.Test).status = ""
		p.test(e.Test).output.Reset()
	case e.Action == "output" && e.Test != "":
		p.test(e.Test).output.WriteString(e.Output)
	case e.Action == "output":
		if seed, ok := strings.CutPrefix(e.Output, "-test.shuffle "); ok {
			p.seed = strings.TrimSpace(seed)
		}
		p.output.WriteString(e.Output)
	case !slices.Contains([]string{"pass", "fail", "skip"}, e.Action):
	case e.Test != "":
		t := p.test(e.Test)
		t.status, t.seconds = e.Action, e.Elapsed
	default:
		p.status, p.seconds = e.Action, e.Elapsed
		return p
	}
	return nil
}

// print prints a package that has ended: if it failed, with the output of what failed.
func (p *pkg) print(out io.Writer) {
	if p.status == "skip" {
		return // it has no tests
	}
	if p.status == "fail" {
		for _, t := range p.order {
			if t.status == "fail" || t.status == "" {
				fmt.Fprint(out, t.output.String())
			}
		}
	}
	for line := range strings.Lines(p.output.String()) {
		if p.status == "fail" || strings.HasPrefix(line, "ok  \t") {
			fmt.Fprint(out, line)
		}
	}
}

// text is everything that the package and its unfinished or failed tests printed.
func (p *pkg) text() string {
	var b strings.Builder
	b.WriteString(p.output.String())
	for _, t := range p.order {
		if t.status == "fail" || t.status == "" {
			b.WriteString(t.output.String())
		}
	}
	return b.String()
}

// crashed: the race detector crashed, and nothing else failed.
func (p *pkg) crashed() bool {
	text := p.text()
	return detectorCrashed(text) && !broken(text) && !strings.Contains(text, "--- FAIL:")
}

// detectorCrashed: the race detector found itself in a state that cannot be, or read memory that it does
// not have while the runtime reported the expiry of a timer to it. Go code that reads such memory panics.
func detectorCrashed(text string) bool {
	segmentation := strings.Contains(text, "SIGSEGV: segmentation violation\nPC=") &&
		strings.Contains(text, "\nruntime.(*timer") && strings.Contains(text, ", synctest bubble")
	return segmentation || strings.Contains(text, "ThreadSanitizer: CHECK failed")
}

// onlyTests: tests have failed by their own verdict. None panicked or raced, the
// detector did not crash, and the package was built.
func (p *pkg) onlyTests() bool {
	text := p.text()
	return len(p.failed()) > 0 && !broken(text) && !detectorCrashed(text)
}

// broken: a panic, a fatal error or a data race.
func broken(text string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.HasPrefix(line, "WARNING: DATA RACE") {
			return true
		}
	}
	return false
}

// failed returns the failed tests that are not subtests.
func (p *pkg) failed() (names []string) {
	for _, t := range p.order {
		if t.status == "fail" && !strings.Contains(t.name, "/") {
			names = append(names, t.name)
		}
	}
	return names
}
