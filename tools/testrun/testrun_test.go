package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// segmentation is what the runtime prints when the detector's own code reads memory that it does not have.
var segmentation = []string{
	"SIGSEGV: segmentation violation", "PC=0x41cb49 m=0 sigcode=1 addr=0x0",
	"goroutine 144604 gp=0xc00197a000 m=0 mp=0x34bb700 [running, synctest bubble 382]:", "runtime.(*timer).maybeRunChan(0xc006c45ac0, 0xc006c459d0)",
}

const crash = "ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346 \"((exiting)) != (0)\" (0x0, 0x0) (tid=1)\n"

// stream makes the events of go test -json from short lines: "pass p", "fail p Test",
// "output p text", "output p/Test text".
func stream(t *testing.T, lines ...string) string {
	t.Helper()
	var b bytes.Buffer
	for _, line := range lines {
		action, rest, _ := strings.Cut(line, " ")
		name, text, _ := strings.Cut(rest, " ")
		p, of, _ := strings.Cut(name, "/")
		e := map[string]any{"Action": action, "Package": p, "Elapsed": 1.5}
		if of != "" {
			e["Test"] = of
		}
		if text != "" {
			e["Output"] = text + "\n"
		}
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(data, '\n'))
	}
	return b.String()
}

// files of the package that is tested.
var files = map[string]string{
	"servers_test.go": "//go:build servers\n\npackage p\n\nfunc TestServer(t *testing.T) {}\nfunc TestServerProperty(t *testing.T) { rapid.Check(t, nil) }\n",
	"timing_test.go":  "package p\n\n// TestTiming starts a process.\n//\n//testrun:again it waits for a process\nfunc TestTiming(t *testing.T) {}\n\nfunc TestOther(t *testing.T) {}\n",
	"windows_test.go": "//go:build linux\n\npackage p\n\nfunc TestLinux(t *testing.T) {}\n",
}

// TestSecondTry: only a crash of the detector, and tests of a kind that allows it, are
// tested again.
func TestSecondTry(t *testing.T) {
	for name, c := range map[string]struct {
		first, second []string // events; without a second, nothing may be run again
		again         string   // the flags of the second run
		passed        bool
	}{
		"all pass": {first: []string{"output p ok  \tp\t1s", "pass p/TestA", "pass p"}, passed: true},
		"a crash":  {[]string{"output p/TestA " + crash, "fail p"}, []string{"pass p/TestA", "pass p"}, "-cpu 1 p", true},
		"a segmentation fault of the detector": {[]string{
			"output p/TestA " + segmentation[0], "output p/TestA " + segmentation[1], "output p/TestA " + segmentation[2], "output p/TestA " + segmentation[3], "fail p/TestA", "fail p",
		}, []string{"pass p/TestA", "pass p"}, "-cpu 1 p", true},
		"a segmentation fault of something else": {first: []string{"output p/TestA " + segmentation[0], "output p/TestA " + segmentation[1], "fail p"}},
		"a crash in the second process of a package": {[]string{
			"run p/TestA", "output p/TestA --- PASS", "pass p/TestA", "run p/TestA", "output p/TestA " + crash, "fail p",
		}, []string{"pass p/TestA", "pass p"}, "-cpu 1 p", true},
		"a crash, twice":       {[]string{"output p/TestA " + crash, "fail p"}, []string{"fail p"}, "-cpu 1 p", false},
		"a crash, and a fault": {first: []string{"output p/TestA --- FAIL: TestA", "output p " + crash, "fail p"}},
		"a race, and a crash":  {first: []string{"output p/TestA WARNING: DATA RACE", "output p " + crash, "fail p"}},
		"a server":             {[]string{"output p -test.shuffle 7", "fail p/TestServer", "fail p/TestServer/sub", "fail p"}, []string{"pass p/TestServer", "pass p"}, "-p 1 -run ^(TestServer)$ p", true},
		"a server, twice":      {[]string{"fail p/TestServer", "fail p"}, []string{"fail p"}, "-p 1 -run ^(TestServer)$ p", false},
		"with a directive":     {[]string{"fail p/TestTiming", "fail p"}, []string{"pass p"}, "-p 1 -run ^(TestTiming)$ p", true},
		"a server's property":  {first: []string{"fail p/TestServerProperty", "fail p"}},
		"any other":            {first: []string{"fail p/TestOther", "fail p"}},
		"another tag":          {first: []string{"fail p/TestLinux", "fail p"}},
		"one of each":          {first: []string{"fail p/TestServer", "fail p/TestOther", "fail p"}},
		"a server that panics": {first: []string{"output p/TestServer panic: x", "fail p/TestServer", "fail p"}},
		"a build":              {first: []string{"output p FAIL\tp [build failed]", "fail p"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "first", stream(t, c.first...))
			write(t, dir, "second", stream(t, c.second...))
			for file, text := range files {
				write(t, dir, file, text)
			}
			// A run fails if its events say so, like one of go test.
			fake := write(t, dir, "go", "#!/bin/sh\ncd '"+dir+"'\nif [ \"$1\" = list ]; then pwd; exit; fi\n"+
				"n=first; [ ! -e called ] || n=second\necho \"$*\" >called.$n; touch called\ncat $n; ! grep -q '\"Action\":\"fail\"' $n\n")
			t.Setenv("GO", fake)
			out, err := os.Create(filepath.Join(dir, "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			r := &runner{ctx: context.Background(), dir: dir, flags: []string{"-short"}, out: out}
			if passed := r.all([]string{"./..."}); passed != c.passed {
				t.Errorf("passed: %t, want %t", passed, c.passed)
			}
			if got := read1(t, dir, "called.first"); got != "test -json -short ./..." {
				t.Errorf("the first run is go %s", got)
			}
			want := ""
			if c.again != "" {
				want = "test -json -short " + c.again
			}
			if got := read1(t, dir, "called.second"); got != want {
				t.Errorf("the second run is go %q, want %q", got, want)
			}
			again := slices.ContainsFunc(r.records, func(rec record) bool { return rec.Again != "" })
			if again != (c.passed && c.again != "") {
				t.Errorf("the records are %v", r.records)
			}
		})
	}
}

// TestOutput: of a package that passes, only its result is printed; of one that fails,
// also what failed or has not ended.
func TestOutput(t *testing.T) {
	var out strings.Builder
	read(strings.NewReader("a line of go\n"+stream(t,
		"output p/TestA quiet", "pass p/TestA", "output p PASS", "output p ok  \tp\t1s", "pass p",
		"output none ?   \tnone\t[no test files]", "skip none",
		"output q/TestB quiet", "pass q/TestB", "output q/TestC loud", "fail q/TestC", "output q/TestD unfinished", "output q FAIL\tq\t1s", "fail q")), &out)
	if want := "a line of go\nok  \tp\t1s\nloud\nunfinished\nFAIL\tq\t1s\n"; out.String() != want {
		t.Errorf("prints\n%s\nwant\n%s", out.String(), want)
	}
}

func TestSummary(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report")
	for _, records := range [][]record{
		{{"p", "TestA", "pass", 2, ""}, {"p", "TestB", "skip", 0, ""}, {Package: "p", Status: "pass", Seconds: 3}},
		{{"q", "TestC", "pass", 4, "passed alone, with the seed 7"}, {"q", "TestD", "fail", 1, ""}},
	} {
		if err := appendRecords(file, records); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := printSummary(&out, file); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"packages, in seconds:\n      3.0  p \n", "tests, in seconds:\n      4.0  q TestC\n      2.0  p TestA\n",
		"FLAKY  q TestC: passed alone, with the seed 7\n", "\ntests: 2 passed, 1 failed, 1 skipped\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// read1 returns the line of a file; empty if there is none.
func read1(t *testing.T, dir, name string) string {
	t.Helper()
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSuffix(string(b), "\n")
}
