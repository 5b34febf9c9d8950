//go:build !linux

package host

import (
	"context"
	"path/filepath"
	"runtime"
	"time"

	ps "github.com/shirou/gopsutil/v4/process"
)

// libraryTable reads the process table through gopsutil. What the system does
// not report of a process stays 0 or empty.
type libraryTable struct {
	users *userNames
}

func newProcessTable() (processTable, error) {
	return &libraryTable{users: newUserNames()}, nil
}

func (t *libraryTable) pids(ctx context.Context) ([]int, error) {
	found, err := ps.PidsWithContext(ctx)
	if err != nil {
		return nil, err
	}
	pids := make([]int, len(found))
	for i, pid := range found {
		pids[i] = int(pid)
	}
	return pids, nil
}

func (t *libraryTable) stat(ctx context.Context, pid int) (processStat, error) {
	p := &ps.Process{Pid: int32(pid)}
	created, err := p.CreateTimeWithContext(ctx)
	if err != nil {
		return processStat{}, err
	}
	s := processStat{pid: pid, start: time.UnixMilli(created)}
	t.identity(ctx, p, &s)
	usage(ctx, p, &s)
	return s, nil
}

// identity fills in the fields that rarely change. The name is that of the
// executable: gopsutil's Name may be taken from the command line.
func (t *libraryTable) identity(ctx context.Context, p *ps.Process, s *processStat) {
	if parent, err := p.PpidWithContext(ctx); err == nil {
		s.parent = int(parent)
	}
	if path, err := p.ExeWithContext(ctx); err == nil && path != "" {
		s.name = filepath.Base(path)
	}
	if uids, err := p.UidsWithContext(ctx); err == nil && len(uids) > 0 {
		s.user = t.users.name(uint64(uids[min(1, len(uids)-1)]))
	} else if name, err := p.UsernameWithContext(ctx); err == nil {
		s.user = name
	}
}

// usage fills in the fields that change.
func usage(ctx context.Context, p *ps.Process, s *processStat) {
	// On macOS gopsutil would start a ps for each process to get the state.
	if runtime.GOOS != "darwin" {
		if states, err := p.StatusWithContext(ctx); err == nil && len(states) > 0 {
			s.state = states[0]
		}
	}
	if times, err := p.TimesWithContext(ctx); err == nil {
		s.cpuTime = time.Duration((times.User + times.System) * float64(time.Second))
	}
	if memory, err := p.MemoryInfoWithContext(ctx); err == nil {
		s.resident = memory.RSS
	}
}
