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
		sample: 4, stream: "retry: 100ms, drain_delay: 10ms, drain: 200ms", plot: filepath.Join(t.TempDir(), "crowd.svg"),
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
		`\| resets \| 0 \| 0 \| reached`, `lost a change.* 0 \| reached`, `sampled subscribers .* \d+ \| reached`, `gap of one`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the table has no line %q", want)
		}
	}
}

func TestFit(t *testing.T) {
	limit, err := descriptors()
	if err != nil {
		t.Skip(err)
	}
	most := limit - spare
	for _, c := range []struct {
		plan
		leaves int
		err    string
	}{
		{plan{subscribers: 1}, 1, ""},
		{plan{subscribers: 3*most + 1}, 4, ""},
		{plan{subscribers: most, leaves: 7}, 7, ""},
		{plan{subscribers: 2*most + 1, leaves: 2}, 0, "need 3 leaves"},
		{plan{subscribers: 0}, 0, "want positive numbers"},
	} {
		c.plan.resources, c.plan.interval = 1, time.Second
		switch err := c.plan.fit(); {
		case c.err == "" && (err != nil || c.plan.leaves != c.leaves):
			t.Errorf("%d subscribers: %d leaves, %v; want %d", c.plan.subscribers, c.plan.leaves, err, c.leaves)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%d subscribers: %v, want %q", c.plan.subscribers, err, c.err)
		}
	}
}
