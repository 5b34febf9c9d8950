package commands

import (
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/watchtide/watchtide/cmd/gateway/internal/cgroup"
)

// limitMemory sets the runtime's memory limit to the container's, less a tenth for
// memory that the runtime does not count: the collector then works harder before
// the kernel kills the process. The environment variable GOMEMLIMIT, which the
// runtime reads itself, takes precedence, unless it is empty, which counts as
// unset.
func limitMemory(logger *slog.Logger) {
	if text := os.Getenv("GOMEMLIMIT"); text != "" {
		logger.Info("memory limit", "limit", text, "from", "GOMEMLIMIT")
		return
	}
	limit, found, err := cgroup.MemoryLimit(os.DirFS("/"))
	if err != nil {
		logger.Warn("the memory limit of the container is not known: want GOMEMLIMIT in the environment", "error", err)
		return
	}
	if !found {
		return
	}
	bytes := limit.Bytes / 10 * 9
	debug.SetMemoryLimit(bytes)
	logger.Info("memory limit", "bytes", bytes, "of", limit.Bytes, "from", limit.File)
}

// returnMemory gives memory that is not used back to the system.
func returnMemory() {
	runtime.GC() // pools release their content in two steps
	debug.FreeOSMemory()
}

// defaultMemory is how much all watches may hold together by default: three
// quarters of the memory limit; 0, meaning no limit, where there is none.
func defaultMemory() int64 {
	limit := debug.SetMemoryLimit(-1) // reads it
	if limit == math.MaxInt64 {
		return 0
	}
	return max(limit/4*3, 1)
}
