//go:build !linux

package figures

// resetPeak returns 0: peaks are not known here.
func resetPeak() int64 { return 0 }

func peakMemory() int64 { return 0 }
