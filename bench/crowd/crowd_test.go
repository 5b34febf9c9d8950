package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if !slices.Contains(os.Args, "-generate") {
		goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
	}
	if err := generate(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestEveryPart makes all measurements with a small crowd. Every figure is in the table, nothing
// was lost, and the counts tell if something was.
func TestEveryPart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the load generator runs on Linux only")
	}
	p := plan{
		subscribers: 40, leaves: 2, resources: 300, bytes: 300, interval: 200 * time.Millisecond, each: time.Second, fast: time.Second,
		sample: 4, generated: 15, stream: "retry: 100ms, drain_delay: 10ms, drain: 200ms", plot: filepath.Join(t.TempDir(), "crowd.svg"),
	}
	r := &run{began: time.Now()}
	var err error
	if r.tree, err = plant(t.Context(), p, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if err := r.all(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.events++
	if wrong, err := r.check(); err != nil || wrong.N != p.subscribers || !strings.Contains(wrong.Example, "last position") {
		t.Errorf("%+v, %v: want that all subscribers lack a change that was not made", wrong, err)
	}
	if err := r.draw(); err != nil {
		t.Error(err)
	}
	var out strings.Builder
	r.table.Print(&out)
	t.Log(out.String())
	for _, want := range []string{
		`\| 40; 2 \|`, `memory for each`, `one change each 200ms: from write to read`, `one change a second: CPU`, `subscribers that moved .*; 40 `,
		`\| resets \| 0 \| 0 \| reached`, `lost a change.* 0 \| reached`, `sampled subscribers .* \d+ \| reached`, `gap of one`, `changes meanwhile: from write to read`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the table has no line %q", want)
		}
	}
}

func TestFit(t *testing.T) {
	few := machine{descriptors: spare + 1000, memory: 1 << 30, processors: 2}
	large := machine{descriptors: 1_200_000, memory: 64 << 30, processors: 16}
	for _, c := range []struct {
		machine
		plan
		leaves, generated int
		err               string
	}{
		{few, plan{subscribers: 1}, 1, 1, ""},
		{few, plan{subscribers: 3001}, 4, 751, ""},
		{few, plan{subscribers: 1000, leaves: 7}, 7, 143, ""},
		{large, plan{subscribers: 1_000_000}, 1, 125_000, ""},
		{large, plan{subscribers: 1_000_000, leaves: 4}, 4, 125_000, ""},
		{few, plan{subscribers: 2001, leaves: 2}, 0, 0, "need 3 leaves, as the limit on descriptors is 2200; raise it (ulimit -n 2201)"},
		{few, plan{subscribers: 1_000_000}, 0, 0, "need some 73.0 GiB of memory, and 1.0 GiB are available: want fewer"},
		{few, plan{subscribers: 0}, 0, 0, "want positive numbers"},
		{machine{descriptors: spare}, plan{subscribers: 1}, 0, 0, "want more than 1200"},
	} {
		c.plan.resources, c.plan.interval = 1, time.Second
		switch err := c.plan.fit(c.machine); {
		case c.err == "" && (err != nil || c.plan.leaves != c.leaves || c.plan.generated != c.generated):
			t.Errorf("%d subscribers: %d leaves, %d of a load generator, %v; want %d and %d", c.plan.subscribers, c.plan.leaves, c.plan.generated, err, c.leaves, c.generated)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%d subscribers: %v, want %q", c.plan.subscribers, err, c.err)
		}
	}
}
