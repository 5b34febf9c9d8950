package commands

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
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
	limit, err := memlimit.FromCgroup()
	switch {
	case errors.Is(err, memlimit.ErrNoLimit), errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported), errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		logger.Warn("the memory limit of the container is not known: want GOMEMLIMIT in the environment", "error", err)
		return
	case limit == 0 || limit >= unlimited:
		return
	}
	bytes := int64(limit / 10 * 9)
	debug.SetMemoryLimit(bytes)
	logger.Info("memory limit", "bytes", bytes, "of", limit, "from", "the cgroup")
}

// unlimited is far below what cgroup v1 reports where there is no limit: the
// largest number that is a whole number of pages. No machine has that much memory.
const unlimited = 1 << 60

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

// collectEvery is how often the pace of the garbage collector is set.
const collectEvery = time.Second

// leastHeadroom is how much garbage the collector may always leave for what watches hold.
const leastHeadroom = 32 << 20

// paceCollector keeps the garbage collector at a pace that suits what watches hold, until the
// context ends. The environment variable GOGC, which the runtime reads itself, takes precedence.
func paceCollector(ctx context.Context, held func() int64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	before := debug.SetGCPercent(defaultPercent)
	defer debug.SetGCPercent(before)
	pace(ctx, liveHeap, held, func(percent int) { debug.SetGCPercent(percent) })
}

// defaultPercent is the pace of the runtime by default: as much garbage as there is live data.
const defaultPercent = 100

// pace calls set whenever the percentage has changed by much.
func pace(ctx context.Context, live, held func() int64, set func(percent int)) {
	now := defaultPercent
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if next := collectorPercent(live(), held()); next*10 < now*9 || next*9 > now*10 || next == defaultPercent && now != next {
			now = next
			set(now)
		}
	}
}

// collectorPercent is how much garbage the collector leaves, in percent of the live heap, where
// watches hold some of it. What they hold is long frames without pointers, which cost the
// collector next to nothing. So for it a quarter is enough, where the rest has as much again.
func collectorPercent(live, held int64) int {
	held = min(held, live)
	if held <= leastHeadroom {
		return defaultPercent
	}
	headroom := live - held + max(leastHeadroom, held/4)
	return int(headroom * defaultPercent / live)
}

// liveHeap is how many bytes the last collection has found in use.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
