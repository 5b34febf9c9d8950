package epoll

import "sync/atomic"

// File is a memory file whose bytes are sent to several connections, without being copied for each.
// Its bytes never change. It is closed when everybody who holds it has released it.
//
// All methods may be called from any goroutine.
type File struct {
	// Static after construction.
	fd     int
	size   int
	closed func() // called once it is closed; may be nil

	holders atomic.Int32
}

// Size is the number of its bytes.
func (f *File) Size() int { return f.size }

// Hold keeps the file until another call of Release. The caller must know that somebody else holds it.
func (f *File) Hold() { f.holders.Add(1) }

// Release ends what NewFile or Hold began.
func (f *File) Release() {
	if f.holders.Add(-1) > 0 {
		return
	}
	f.close()
	if f.closed != nil {
		f.closed()
	}
}
