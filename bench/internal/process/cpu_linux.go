package process

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the processor time that the gateway has used so far, in nanoseconds: /proc counts
// in hundredths of a second.
func (g *Gateway) CPU() (time.Duration, error) {
	const scheduled = 2 // of the clocks of a process; see clock_getcpuclockid(3)
	return cpuTime(int32(^g.cmd.Process.Pid<<3 | scheduled))
}

// CPU is the processor time that this process has used so far.
func CPU() (time.Duration, error) { return cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID) }

func cpuTime(clock int32) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), os.NewSyscallError("clock_gettime", err)
}
