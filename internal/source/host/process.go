package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// process is the value of one process.
type process struct {
	PID       int    `json:"pid"`
	ParentPID int    `json:"parent_pid"` // 0: none
	Name      string `json:"name"`
	// State is that of the first thread: running, sleep, blocked (waits for a
	// device), idle (a waiting thread of the kernel), stop, zombie, dead, or
	// empty if it is another.
	State string `json:"state"`
	// User is the name of the effective user, or the number if it has none. A
	// change after the first minute may take another minute to show.
	User string `json:"user"`
	// CPUPercent is the CPU time used since the previous poll, in per cent of one
	// core: 250 is two cores and a half. 0 the first time a process is seen.
	CPUPercent    percent `json:"cpu_percent"`
	ResidentBytes uint64  `json:"resident_bytes"`
	StartTime     string  `json:"start_time"` // RFC 3339, UTC
}

// processTable is the operating system's view of its processes.
type processTable interface {
	// pids lists the processes.
	pids(ctx context.Context) ([]int, error)
	// stat reads one process of the last list. It fails if the process is
	// gone, or hidden.
	stat(ctx context.Context, pid int) (processStat, error)
}

// processStat is one process as the operating system reports it.
type processStat struct {
	pid, parent int
	name        string
	state       string
	user        string
	cpuTime     time.Duration // since its start, of all threads
	resident    uint64        // bytes
	start       time.Time
}

// processReader lists processes and measures their CPU time.
type processReader struct {
	table processTable
	meter cpuMeter
}

func newProcessReader() (*processReader, error) {
	table, err := newProcessTable()
	if err != nil {
		return nil, err
	}
	return &processReader{table: table}, nil
}

func (r *processReader) read(ctx context.Context) ([]item, error) {
	pids, err := r.table.pids(ctx)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	slices.Sort(pids)
	items, err := r.readAll(ctx, pids)
	if err != nil {
		return nil, err
	}
	r.meter.forgetOthers(pids)
	return items, nil
}

// readAll reads the processes that can be read. A process that is gone is not an
// error; that none at all can be read is one, for this process is among them.
func (r *processReader) readAll(ctx context.Context, pids []int) ([]item, error) {
	items := make([]item, 0, len(pids))
	var skipped error
	for _, pid := range pids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		value, err := r.value(ctx, pid)
		if isOurFault(err) {
			return nil, fmt.Errorf("read process %d: %w", pid, err)
		}
		if err != nil {
			skipped = err
			continue
		}
		items = append(items, item{key: strconv.Itoa(pid), value: value})
	}
	if len(items) == 0 && skipped != nil {
		return nil, fmt.Errorf("read processes: none of %d could be read: %w", len(pids), skipped)
	}
	return items, nil
}

// isOurFault reports that this program ran out of a resource: the process may
// well exist, and must not be reported as gone.
func isOurFault(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// value reads one process.
func (r *processReader) value(ctx context.Context, pid int) ([]byte, error) {
	s, err := r.table.stat(ctx, pid)
	if err != nil {
		return nil, err
	}
	return encode(process{
		PID:           s.pid,
		ParentPID:     s.parent,
		Name:          s.name,
		State:         s.state,
		User:          s.user,
		CPUPercent:    r.meter.measure(s, time.Now()),
		ResidentBytes: s.resident,
		StartTime:     s.start.UTC().Format(time.RFC3339Nano),
	})
}
