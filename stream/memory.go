package stream

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// ErrMemory says that a watch does not fit into its memory ceiling, or that of all
// watches. See MemoryError.
var ErrMemory = errors.New("the watch does not fit into its memory")

// Memory is a ceiling for what watches hold: their logs, and what is staged on
// its way into them. Two fifths are for what the logs serve, and two for what is
// staged, so that there is always room to load what the upstream has now beside
// what is served. The last fifth is for what was superseded, until it is compacted.
//
// What it counts are bytes that are held. The garbage collector needs room
// beside them; see debug.SetMemoryLimit.
//
// All methods may be called from any goroutine.
type Memory struct {
	ceiling int64 // static after construction; 0: none

	// Atomic.
	logs, staged atomic.Int64
}

// NewMemory returns a ceiling of so many bytes, which several watches may share;
// 0: there is none, and it only counts.
func NewMemory(ceiling int64) *Memory { return &Memory{ceiling: ceiling} }

// Ceiling is the most bytes that may be held; 0: any number.
func (m *Memory) Ceiling() int64 { return m.ceiling }

// Logs is how many bytes the logs hold of what is not superseded.
func (m *Memory) Logs() int64 { return m.logs.Load() }

// Staged is how many bytes are held of what is not complete yet.
func (m *Memory) Staged() int64 { return m.staged.Load() }

// What of the ceiling is allowed.
func (m *Memory) forLogs() int64   { return m.ceiling / 5 * 2 }
func (m *Memory) forStaged() int64 { return m.ceiling / 5 * 2 }

// together is how much is held, with as much of what is superseded as compaction
// leaves.
func (m *Memory) together() int64 { return m.logs.Load()*7/5 + m.staged.Load() }

// MemoryError says why a watch does not fit. It is an ErrMemory.
type MemoryError struct {
	What    string // of which there is too much
	Needs   int64  // bytes, at least
	Allowed int64  // bytes
	Ceiling int64  // bytes
	Shared  bool   // it is the ceiling of all watches together
}

// Error says what is too much, and what would be right.
func (e *MemoryError) Error() string {
	whose, remedy := "its memory ceiling", "narrow the watch"
	if e.Shared {
		whose, remedy = "the memory ceiling of all watches together", "narrow or remove watches"
	}
	would := float64(e.Needs) / 2 * 5 // see forLogs and forStaged
	return fmt.Sprintf("too large: %s needs at least %s, and may have %s of %s, %s: %s, or raise it to more than %s",
		e.What, sizeText(e.Needs), sizeText(e.Allowed), whose, sizeText(e.Ceiling), remedy, sizeText(int64(would)))
}

// Is makes it an ErrMemory.
func (e *MemoryError) Is(target error) bool { return target == ErrMemory }

// sizeText returns for instance 1.5 GiB.
func sizeText(n int64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d bytes", n)
	}
	size, unit := float64(n)/step, 0
	for size >= step && unit < len("KMGT")-1 {
		size /= step
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGT"[unit])
}
