package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// usage is the processor time that processes have used so far, or between
// two times.
type usage struct{ user, system time.Duration }

func (u usage) since(earlier usage) usage {
	return usage{u.user - earlier.user, u.system - earlier.system}
}

func (u usage) total() time.Duration { return u.user + u.system }

// tick is the unit of /proc/PID/stat: 1/100 s on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// processors sums the usage of processes.
func processors(pids []int) (out usage, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return out, err
		}
		// The second word, in parentheses, may contain anything; proc(5) counts from
		// 1.
		words := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(words) < 13 {
			return out, fmt.Errorf("/proc/%d/stat: %q: want 52 words", pid, text)
		}
		user, err1 := strconv.Atoi(string(words[11]))
		system, err2 := strconv.Atoi(string(words[12]))
		if err1 != nil || err2 != nil {
			return out, fmt.Errorf("/proc/%d/stat: %q: want numbers as words 14 and 15", pid, text)
		}
		out.user += time.Duration(user) * tick
		out.system += time.Duration(system) * tick
	}
	return out, nil
}

// proportional sums the proportional set size of processes, in KiB: memory that
// several share counts as a part for each.
func proportional(pids []int) (float64, error) { return sum(pids, "smaps_rollup", "Pss:") }

// resident sums the present resident memory of processes, and peak the maximum
// since forgetPeak, in KiB.
func resident(pids []int) (float64, error) { return sum(pids, "status", "VmRSS:") }
func peak(pids []int) (float64, error)     { return sum(pids, "status", "VmHWM:") }

func forgetPeak(pids []int) error {
	for _, pid := range pids {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
			return err
		}
	}
	return nil
}

func sum(pids []int, file, label string) (total float64, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			return 0, err
		}
		n, err := kibibytes(text, label)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/%s: %w", pid, file, err)
		}
		total += n
	}
	return total, nil
}

func kibibytes(text []byte, label string) (float64, error) {
	for line := range bytes.Lines(text) {
		if words := bytes.Fields(line); len(words) == 3 && string(words[0]) == label {
			return strconv.ParseFloat(string(words[1]), 64)
		}
	}
	return 0, fmt.Errorf("no line %s", label)
}
