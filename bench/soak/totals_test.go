//go:build servers

package soak

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// totals counts the events of a run. Safe for concurrent use.
type totals struct {
	// Atomic.
	events     atomic.Int64 // that sampled subscribers were sent
	checked    atomic.Int64 // connections
	compressed atomic.Int64 // streams

	mu       sync.Mutex
	ends     map[string]int // of sampled connections
	resets   map[string]int // that they were sent, by reason
	faults   map[string]*faultTotals
	failures []error        // a few of each kind
	kinds    map[string]int // how many of each
	failed   int
}

// faultTotals are the outcomes of one kind of fault.
type faultTotals struct {
	times   int
	lasted  time.Duration // all together
	slowest time.Duration // recovery after it was over
}

func newTotals() *totals {
	return &totals{ends: map[string]int{}, resets: map[string]int{}, faults: map[string]*faultTotals{}, kinds: map[string]int{}}
}

// fail records a violation. All are counted, and some of each kind are kept: those
// whose first line is the same.
func (t *totals) fail(err error) {
	if err == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	kind, _, _ := strings.Cut(err.Error(), "\n")
	t.failed++
	if t.kinds[kind]++; t.kinds[kind] <= 2 && len(t.failures) < 20 {
		t.failures = append(t.failures, err)
		fmt.Fprintln(os.Stderr, "failure:", err) // now: a long run may be aborted
	}
}

// ended counts how a connection ended. A connection that reads without delay must end
// as planned, or with a goodbye.
func (t *totals) ended(s *subscriber, v visit, err error) {
	name := "cut off because it did not read"
	switch {
	case errors.Is(err, errHungUp):
		name = "left"
	case errors.Is(err, errGoodbye):
		name = err.Error()
	case errors.Is(err, errRefused):
		name = err.Error()
		t.fail(fmt.Errorf("%s: %w", s.name, err))
	case errors.Is(err, errWrong) || !v.slow():
		name = "failed"
		t.fail(fmt.Errorf("%s (%s): its stream ended: %w", s.name, s.query(), err))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends[name]++
}

func (t *totals) reset(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resets[reason]++
}

func (t *totals) fault(name string, lasted, recovered time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.faults[name]
	if f == nil {
		f = &faultTotals{}
		t.faults[name] = f
	}
	f.times++
	f.lasted += lasted
	f.slowest = max(f.slowest, recovered)
}

// struck is the number of faults so far.
func (t *totals) struck() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.faults {
		n += f.times
	}
	return n
}

// err returns the violations.
func (t *totals) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == 0 {
		return nil
	}
	var lines []string
	for _, err := range t.failures {
		lines = append(lines, err.Error())
	}
	return fmt.Errorf("%d failures, of which the first are:\n%s", t.failed, strings.Join(lines, "\n"))
}

// ends are the first and the last part of a text.
func ends(text string) string {
	const enough = 2000
	if len(text) > 2*enough {
		return fmt.Sprintf("%s\n… (%d bytes) …\n%s", text[:enough], len(text)-2*enough, text[len(text)-enough:])
	}
	return text
}
