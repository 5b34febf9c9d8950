package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Usage is the processor time that processes have used, of their own and of the kernel for them.
type Usage struct{ User, System time.Duration }

// Since is the difference to an earlier usage.
func (u Usage) Since(earlier Usage) Usage {
	return Usage{u.User - earlier.User, u.System - earlier.System}
}

// Total is both together.
func (u Usage) Total() time.Duration { return u.User + u.System }

// tick is the unit of /proc/PID/stat: 1/100 s on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// UsageOf sums the usage of processes so far; see proc_pid_stat(5). Linux only, as all that follows.
func UsageOf(pids ...int) (out Usage, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return out, err
		}
		// The second word, in parentheses, may contain anything; the manual counts from 1.
		words := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(words) < 13 {
			return out, fmt.Errorf("/proc/%d/stat: %q: want 52 words", pid, text)
		}
		user, err1 := strconv.Atoi(string(words[11]))
		system, err2 := strconv.Atoi(string(words[12]))
		if err1 != nil || err2 != nil {
			return out, fmt.Errorf("/proc/%d/stat: %q: want numbers as words 14 and 15", pid, text)
		}
		out.User += time.Duration(user) * tick
		out.System += time.Duration(system) * tick
	}
	return out, nil
}

// Proportional sums the proportional set size of processes in bytes: memory that several share
// counts as a part for each.
func Proportional(pids ...int) (int64, error) { return sum(pids, "smaps_rollup", "Pss:") }

// Resident sums the present resident memory of processes in bytes.
func Resident(pids ...int) (int64, error) { return sum(pids, "status", "VmRSS:") }

// PeakResident sums the most that it was in each since its start, or since ForgetPeak, in bytes.
func PeakResident(pids ...int) (int64, error) { return sum(pids, "status", "VmHWM:") }

// ForgetPeak makes PeakResident begin again.
func ForgetPeak(pids ...int) error {
	for _, pid := range pids {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
			return err
		}
	}
	return nil
}

// KernelMemory is the memory of all objects of the kernel in bytes.
func KernelMemory() (int64, error) { return labelled("/proc/meminfo", "Slab:") }

// AvailableMemory is how much memory programs can still have.
func AvailableMemory() (int64, error) { return labelled("/proc/meminfo", "MemAvailable:") }

func sum(pids []int, file, label string) (total int64, err error) {
	for _, pid := range pids {
		n, err := labelled(fmt.Sprintf("/proc/%d/%s", pid, file), label)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// labelled reads a line such as "VmRSS:   1234 kB" of a file, in bytes.
func labelled(file, label string) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if words := bytes.Fields(line); len(words) == 3 && string(words[0]) == label {
			kib, err := strconv.ParseInt(string(words[1]), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", file, err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("%s has no line %s", file, label)
}
