package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// record is one line of a report: a test that is not a subtest, or a package, which
// has no test. Scripts of other test runners write the same.
type record struct {
	Package string  `json:"package"`
	Test    string  `json:"test,omitempty"`
	Status  string  `json:"status"` // pass, fail, skip
	Seconds float64 `json:"seconds"`
	Again   string  `json:"again,omitempty"` // it failed, and passed when it was run again: why that was
}

// record adds the records of a package; again is not empty if it passed only then.
func (r *runner) record(p *pkg, again string) {
	status := func(s string) (string, string) {
		if s == "fail" && again != "" {
			return "pass", again
		}
		return s, ""
	}
	failed := false
	for _, t := range p.order {
		if strings.Contains(t.name, "/") || t.status == "" {
			continue
		}
		failed = failed || t.status == "fail"
		s, a := status(t.status)
		r.records = append(r.records, record{p.name, t.name, s, t.seconds, a})
	}
	s, a := status(p.status)
	if failed {
		a = "" // its tests say it
	}
	r.records = append(r.records, record{Package: p.name, Status: s, Seconds: p.seconds, Again: a})
}

func appendRecords(file string, records []record) error {
	var b bytes.Buffer
	for _, rec := range records {
		line, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	return cmp.Or(err, f.Close())
}

// printSummary prints what was slow, what was tried twice, and the number of tests.
func printSummary(out io.Writer, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var tests, packages, again []record
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var rec record
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if rec.Test == "" {
			packages = append(packages, rec)
		} else {
			tests = append(tests, rec)
			count[rec.Status]++
		}
		if rec.Again != "" {
			again = append(again, rec)
		}
	}
	printSlowest(out, "packages", packages)
	printSlowest(out, "tests", tests)
	if len(again) == 0 {
		fmt.Fprintln(out, "Nothing was tried twice.")
	} else {
		fmt.Fprintln(out, "Tried twice. The next change mends each that is flaky:")
	}
	for _, rec := range again {
		fmt.Fprintf(out, "  FLAKY  %s %s: %s\n", rec.Package, rec.Test, rec.Again)
	}
	fmt.Fprintf(out, "tests: %d passed, %d failed, %d skipped\n", count["pass"], count["fail"], count["skip"])
	return nil
}

func printSlowest(out io.Writer, of string, records []record) {
	const most = 15
	slices.SortFunc(records, func(a, b record) int { return cmp.Compare(b.Seconds, a.Seconds) })
	fmt.Fprintf(out, "The slowest %s, in seconds:\n", of)
	for _, rec := range records[:min(most, len(records))] {
		fmt.Fprintf(out, "  %7.1f  %s %s\n", rec.Seconds, rec.Package, rec.Test)
	}
}
