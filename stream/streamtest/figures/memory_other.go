//go:build !linux

package figures

// resetPeak says that peaks are not known here.
func resetPeak() int64 { return 0 }

func peakMemory() int64 { return 0 }
