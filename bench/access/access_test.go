package main

import (
	"regexp"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// TestEveryPart makes all measurements, and every figure is in the table.
func TestEveryPart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the load generator runs on Linux only")
	}
	b, err := newBench(t.Context(), plan{streams: 20, principals: 2, resources: 40, differ: 2, rounds: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if err := b.switches(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	b.Print(&out)
	t.Log(out.String())
	for _, want := range []string{
		`moves 20 streams to another view.*\| \d\.\d\d s \|`, `bytes to each of them.*\| \d+\.\d KiB`, `CPU of the gateway for each stream`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the table has no line %q", want)
		}
	}
}
