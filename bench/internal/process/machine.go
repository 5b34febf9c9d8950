package process

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine returns a sentence about the processor, the system, and how busy it has been.
// Call it at the end of a measurement.
func Machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(text), "model name\t: "); ok {
			model, _, _ = strings.Cut(rest, "\n")
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	load, _ := os.ReadFile("/proc/loadavg")
	minute, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%d cores of %s, Linux %s, %s, load average at the end %s.",
		runtime.NumCPU(), model, strings.TrimSpace(string(kernel)), runtime.Version(), minute)
}
