package figures

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
)

// resetPeak releases free memory and resets the peak of the process's resident
// memory. It returns what is resident now, in bytes, or 0 if it cannot.
func resetPeak() int64 {
	debug.FreeOSMemory()
	if os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) != nil {
		return 0
	}
	return memory("VmRSS:")
}

// peakMemory is the peak since resetPeak, in bytes.
func peakMemory() int64 { return memory("VmHWM:") }

// memory reads a line of proc_pid_status(5).
func memory(field string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	var kib int64
	_, rest, _ := bytes.Cut(text, []byte(field))
	if _, err := fmt.Fscan(bytes.NewReader(rest), &kib); err != nil {
		return 0
	}
	return kib << 10
}
