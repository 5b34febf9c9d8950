package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// procTable reads /proc. It uses procfs and not gopsutil, which completes a name of
// 15 bytes from the command line, so that the arguments of a program that rewrites
// its title show up in the name, and which reads the same file once for each field.
type procTable struct {
	fs     procfs.FS
	procs  map[int]procfs.Proc // as listed by pids
	owners *ownerCache
	users  *userNames
	boot   bootClock
}

const (
	tick            = time.Second / 100 // of the times in /proc/PID/stat, on every architecture
	flagKernel      = 0x00200000        // PF_KTHREAD of include/linux/sched.h
	kernelWorker    = "kworker/"
	kernelWorkerEnd = "+-"
)

func newProcessTable() (processTable, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, fmt.Errorf("open the process table: %w", err)
	}
	return &procTable{
		fs: fs, owners: newOwnerCache(), users: newUserNames(), boot: bootClock{now: bootTime},
	}, nil
}

func (t *procTable) pids(context.Context) ([]int, error) {
	if err := t.boot.set(); err != nil {
		return nil, err
	}
	procs, err := t.fs.AllProcs()
	if err != nil {
		return nil, err
	}
	t.procs = make(map[int]procfs.Proc, len(procs))
	pids := make([]int, len(procs))
	for i, p := range procs {
		pids[i] = p.PID
		t.procs[p.PID] = p
	}
	t.owners.forgetOthers(t.procs)
	return pids, nil
}

func (t *procTable) stat(_ context.Context, pid int) (processStat, error) {
	proc := t.procs[pid]
	s, err := proc.Stat()
	if err != nil {
		return processStat{}, err
	}
	start := t.boot.at.Add(tick * time.Duration(s.Starttime))
	user, err := t.user(proc, s, start)
	if err != nil {
		return processStat{}, err
	}
	return processStat{
		pid:      pid,
		parent:   s.PPID,
		name:     kernelName(s),
		state:    stateNames[s.State],
		user:     user,
		cpuTime:  tick * time.Duration(s.UTime+s.STime),
		resident: uint64(max(0, s.ResidentMemory())),
		start:    start,
	}, nil
}

// user returns the name of the effective user. Threads of the kernel are root's.
func (t *procTable) user(proc procfs.Proc, s procfs.ProcStat, start time.Time) (string, error) {
	if s.Flags&flagKernel != 0 {
		return t.users.name(0), nil
	}
	uid, err := t.owners.uid(proc, start)
	if err != nil {
		return "", err
	}
	return t.users.name(uid), nil
}

// kernelName returns the name of a process. A kernel worker thread shows its
// current work after its name ("kworker/u8:2-events_unbound"), which differs at
// nearly every poll, and is cut off. Those with a permanent task
// ("kworker/R-netns") have no colon.
func kernelName(s procfs.ProcStat) string {
	if s.Flags&flagKernel == 0 || !strings.HasPrefix(s.Comm, kernelWorker) {
		return s.Comm
	}
	colon := strings.IndexByte(s.Comm, ':')
	if colon < 0 {
		return s.Comm
	}
	if end := strings.IndexAny(s.Comm[colon:], kernelWorkerEnd); end > 0 {
		return s.Comm[:colon+end]
	}
	return s.Comm
}

// stateNames are gopsutil's words for the letters of proc(5), so that a state
// has the same name on every system.
var stateNames = map[string]string{
	"R": "running",
	"S": "sleep",
	"D": "blocked",
	"I": "idle",
	"T": "stop",
	"t": "stop", // by a debugger
	"Z": "zombie",
	"X": "dead",
}

// bootClock holds when the machine booted, by the wall clock. The start of a
// process is known relative to it.
type bootClock struct {
	now func() (time.Time, error)
	at  time.Time
}

// set measures the boot time again, but keeps the old one unless the wall clock
// was set: otherwise the noise of the measurement would change every process.
func (b *bootClock) set() error {
	at, err := b.now()
	if err != nil {
		return err
	}
	if at.Sub(b.at).Abs() >= time.Second {
		b.at = at.Round(tick)
	}
	return nil
}

// bootTime returns the wall clock's time of boot. The kernel counts the start
// of processes in CLOCK_BOOTTIME, which advances while the machine sleeps.
func bootTime() (time.Time, error) {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}, fmt.Errorf("read the time since boot: %w", err)
	}
	return time.Now().Add(-time.Duration(up.Nano())), nil
}
