package epoll

import (
	"errors"
	"sync"
	"sync/atomic"
)

// File is a memory file whose bytes are sent to several connections, without being copied for each.
// Its bytes never change. It is closed when each of its holders has released it, or when it is taken away
// from them.
//
// All methods may be called from any goroutine.
type File struct {
	// Static after construction.
	size   int
	closed func() // called once it is closed; may be nil

	holders atomic.Int32

	mu sync.RWMutex // guards fd; held for reading while the kernel reads the file
	fd int          // negative: it is closed
}

// ErrTaken means that a file was taken away from its holders.
var ErrTaken = errors.New("the memory file was taken away")

// Size is the number of its bytes.
func (f *File) Size() int { return f.size }

// Hold keeps the file until another call of Release. The caller must know that there is a holder.
func (f *File) Hold() { f.holders.Add(1) }

// Release ends what NewFile or Hold began.
func (f *File) Release() {
	if f.holders.Add(-1) == 0 {
		f.TakeAway()
	}
}

// TakeAway closes the file although it may have holders, which can read it no more. What connections are
// still sending belongs to them.
func (f *File) TakeAway() {
	f.mu.Lock()
	open := f.fd >= 0
	if open {
		f.close()
		f.fd = -1
	}
	f.mu.Unlock()
	if open && f.closed != nil {
		f.closed()
	}
}
