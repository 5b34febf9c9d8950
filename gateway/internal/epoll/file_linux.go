package epoll

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// errHugeFiles means that a small file would take a huge page.
var errHugeFiles = errors.New("memory files have huge pages here")

// hugeByDefault reports whether memory files have huge pages here. The setting is read once.
var hugeByDefault = sync.OnceValue(func() bool { return hugeFiles(hugeFilesSetting) })

// NewFile returns a file of some bytes, which the caller holds. closed, which may be nil, is called once the file is
// closed.
func NewFile(bytes [][]byte, closed func()) (*File, error) {
	if hugeByDefault() {
		return nil, errHugeFiles
	}
	fd, err := unix.MemfdCreate("watchtide-stretch", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := &File{fd: fd, closed: closed}
	f.holders.Store(1)
	for len(bytes) > 0 {
		n := min(len(bytes), maxVector)
		if err := f.append(bytes[:n]); err != nil {
			f.close()
			return nil, err
		}
		bytes = bytes[n:]
	}
	return f, nil
}

// append writes bytes at the end of the file. Less than all is written only if the system has no
// memory left.
func (f *File) append(bytes [][]byte) error {
	want := 0
	for _, b := range bytes {
		want += len(b)
	}
	n, err := unix.Writev(f.fd, bytes)
	switch {
	case err != nil:
		return os.NewSyscallError("writev", err)
	case n < want:
		return os.NewSyscallError("writev", unix.ENOSPC)
	}
	f.size += n
	return nil
}

// ReadAt reads its bytes.
func (f *File) ReadAt(p []byte, at int64) (int, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.fd < 0 {
		return 0, ErrTaken
	}
	return unix.Pread(f.fd, p, at)
}

// close frees the file.
func (f *File) close() { unix.Close(f.fd) }

// Send sends a file from an offset on.
func (p *epoll) Send(h Handle, f *File, from int) (int, error) {
	if h&securedBit != 0 {
		return p.sendSecured(h, f, from)
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.fd < 0 {
		return 0, ErrTaken
	}
	n, err, _ := sendFile(int(h), f.fd, int64(from), f.size-from)
	n, _, err = complete(n, 1, f.size-from, err)
	return n, err
}
