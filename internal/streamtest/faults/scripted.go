package faults

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Scripted is a fault of an upstream that a test scripts: of one that is wrong or
// hostile, which no real server is on request.
type Scripted struct {
	// Source and Fault are names.
	Source, Fault string
	// Says is what the watch gives as the reason, or a part of it. Empty: the watch
	// is in sync in spite of the fault.
	Says string
}

// ScriptedPrefix is the beginning of the line of a row in the log of a test.
const ScriptedPrefix = "scripted"

// String returns the row as `make reliability` reads it: fields between bars.
func (s Scripted) String() string {
	outcome := "in sync"
	if s.Says != "" {
		outcome = "refused: " + strings.ReplaceAll(s.Says, "|", "/")
	}
	return fmt.Sprintf("%s | %s | %s | %s |", ScriptedPrefix, s.Source, s.Fault, outcome)
}

const (
	// scriptedMemory is the memory of the watch.
	scriptedMemory = 32 << 20
	// scriptedHeap is how much the heap may grow meanwhile: what a watch may hold
	// counts without the garbage, and the script has memory of its own.
	scriptedHeap = 5 * scriptedMemory
)

// Run has a watch with little memory follow the source until it says what the row
// has, and logs the row. The test fails if it does not, or if the process takes much
// more than the watch may. It may run in a synctest bubble.
func (s Scripted) Run(t testing.TB, source stream.Source) {
	t.Helper()
	base := heap()
	r := watch.NewRegistry()
	defer r.Close()
	w, err := r.Add(watch.Config{
		Name: "scripted", Source: source, MaxBytes: scriptedMemory, StaleAfter: time.Millisecond,
		Backoff: watch.Backoff{Min: 20 * time.Millisecond, Max: 100 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	late := time.NewTimer(s.patience())
	defer late.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for !s.reached(w) {
		changed := w.Changed()
		select {
		case <-changed:
		case <-look.C:
		case <-late.C:
			t.Errorf("%s: the watch is %v (%s), and its last error %q: want %q",
				s.Fault, w.Status().State, w.Status().Full(), w.Upstream().LastError, s.Says)
			return
		}
	}
	if grew := int64(heap() - base); grew > scriptedHeap {
		t.Errorf("%s: the heap grew by %d MiB: want less than %d", s.Fault, grew>>20, scriptedHeap>>20)
	}
	t.Log(s)
}

// patience is how long the outcome may take: long only where the upstream is slow.
func (s Scripted) patience() time.Duration {
	if s.Says == "" {
		return 5 * time.Minute
	}
	return 90 * time.Second
}

func (s Scripted) reached(w *watch.Watch) bool {
	if s.Says == "" {
		return w.Status().State == stream.InSync && w.Snapshot().Count() > 0
	}
	return strings.Contains(w.Upstream().LastError, s.Says)
}

// heap is how large the heap has been: what is free again stays in it.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys
}
