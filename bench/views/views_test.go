package main

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a plan of a few views and tenths of seconds.
func small() plan {
	return plan{
		subscribers: 10, shared: 2, rounds: 1,
		views: 20, resources: 40, commits: 20, interval: 5 * time.Millisecond, settle: 10 * time.Millisecond, heartbeat: time.Second,
		scans: []int{1, 3, 6}, held: 10,
		large: 500, followers: 3, builds: 2, turns: 1, phase: 100 * time.Millisecond,
		windows: 40, whole: 3, changes: 100, windowed: 200 * time.Millisecond,
		lists: 2, polls: 5, streams: 5, events: 2, requests: 20, turnsOfRequests: 2,
	}
}

// TestEveryPart makes all measurements, and every figure is in the table.
func TestEveryPart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the load generator runs on Linux only")
	}
	b, err := newBench(t.Context(), options{plan: small()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	b.before = b.program
	if err := b.runAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	b.Print(&out)
	t.Log(out.String())
	for _, want := range []string{
		`a view with 10 subscribers`, `20 views by .value\.team`, `20 views by prefix`, `idle gateway`, `each of 6 views`,
		`beyond \d\.\d KiB of frames`, `by an equality`, `on the whole value`, `p99 .* 3 subscribers`,
		`opening 40 streams, each with one of 20 windows of 50 of 500`, `bytes to each of them .*100 changes`, `CPU .* against one of the whole watch`,
		`with 40 windows; with 3 streams`,
		`CPU of a list .*unchanged`, `a long poll .*unchanged`, `a stream, 5 subscribers .*unchanged`,
		`10 subscribers with tokens and 5 roles.* 5 views`, `a static token, more`, `a JWT that was seen`, `a new ES256 token`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the table has no line %q", want)
		}
	}
}

func TestUnknownParts(t *testing.T) {
	for _, only := range []string{"nothing", "("} {
		if b, err := newBench(t.Context(), options{only: only}); err == nil {
			b.close()
			t.Errorf("-only %s: no error", only)
		}
	}
}

// TestValues: a watch has values of some 300 bytes, and groups of the same size.
func TestValues(t *testing.T) {
	d := data{resources: 100, groups: 10}
	for _, i := range []int{0, 99} {
		if n := len(d.value(i)); n < 280 || n > 340 {
			t.Errorf("value %d has %d bytes: %s", i, n, d.value(i))
		}
		if want := fmt.Sprintf(`"team":"t%d"`, i%10); !strings.Contains(string(d.value(i)), want) {
			t.Errorf("value %d is %s, want %s", i, d.value(i), want)
		}
	}
	if d.key(13) != "group-00003/resource-000013" {
		t.Errorf("key %s", d.key(13))
	}
}
