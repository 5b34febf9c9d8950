package epoll

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// slabFile holds copies of slabs of the log in a memory file (memfd_create(2)), from
// which the kernel sends them to any number of connections with sendfile(2), without
// copying the bytes for each. A slab is copied when it is sent for the second time
// within a while, so that a single snapshot does not pay for it.
//
// Published bytes never change, so a slice is identified by its address. The slice is
// retained while it is in the file, so that nothing else can be allocated at that
// address.
//
// All methods may be called from any goroutine.
type slabFile struct {
	budget int64     // static after construction: the most bytes that are kept
	seen   seenSlabs // that are not in the file

	mu     sync.RWMutex // guards the following fields; held for reading while the kernel reads the file
	file   *os.File     // nil: not available, or not needed yet
	failed bool         // the system has no such files
	pages  map[uintptr]*slabPage
	free   []int64     // places in the file without a page
	end    int64       // of the places that were ever used
	oldest time.Time   // no page was used last before this
	sweep  *time.Timer // nil: the file is empty
}

// slabPage is one slab, or the part of it that is sent at once.
type slabPage struct {
	// Static after construction.
	bytes []byte
	at    int64 // in the file

	used atomic.Int64 // when it was last sent, in nanoseconds
}

// seenSlabs remembers when slices were sent for the first time.
//
// All methods may be called from any goroutine.
type seenSlabs struct {
	mu sync.Mutex // guards the following field
	at map[uintptr]time.Time
}

const (
	// slabFileBudget is the most bytes that are kept in the file.
	slabFileBudget = 32 << 20
	// slabFilePage is the room for one page: a full slab of the log.
	slabFilePage = 64 << 10
	// slabFileKeeps is how long an unused page is kept, and how long a slice that was
	// sent once is remembered.
	slabFileKeeps = 2 * time.Second
	// slabFileSeen is how many slices that were sent once are remembered.
	slabFileSeen = 4096
)

func newSlabFile() *slabFile {
	return &slabFile{budget: slabFileBudget, pages: map[uintptr]*slabPage{}, seen: seenSlabs{at: map[uintptr]time.Time{}}}
}

// lastByte identifies a slice: the rest of a slice that was sent in part ends at the
// same position.
func lastByte(p []byte) uintptr { return uintptr(unsafe.Pointer(&p[len(p)-1])) }

// send sends p to a socket from the file. It returns false if p is not there.
func (f *slabFile) send(socket int, p []byte) (n int, err error, there bool) {
	if len(p) < SlabFileSmallest || len(p) > slabFilePage {
		return 0, nil, false
	}
	key, now := lastByte(p), time.Now()
	if n, err, there = f.sendPage(socket, p, key, now); there || !f.seen.again(key, now) || !f.add(key, p, now) {
		return n, err, there
	}
	return f.sendPage(socket, p, key, now)
}

// sendPage is send for what is in the file.
func (f *slabFile) sendPage(socket int, p []byte, key uintptr, now time.Time) (n int, err error, there bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	page := f.pages[key]
	if page == nil || len(p) > len(page.bytes) {
		return 0, nil, false
	}
	page.used.Store(now.UnixNano())
	return sendFile(socket, int(f.file.Fd()), page.at+int64(len(page.bytes)-len(p)), len(p))
}

// sendFile calls the kernel without notifying the scheduler: the call cannot block.
func sendFile(socket, file int, at int64, size int) (int, error, bool) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDFILE, uintptr(socket), uintptr(file), uintptr(unsafe.Pointer(&at)), uintptr(size), 0, 0)
	if errno != 0 {
		return 0, errno, true
	}
	return int(n), nil, true
}

// again reports whether a slice was sent before, within a while. If not, it remembers that it is sent now.
func (s *seenSlabs) again(key uintptr, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, known := s.at[key]; known && now.Sub(before) <= slabFileKeeps {
		return true
	}
	if len(s.at) >= slabFileSeen {
		clear(s.at)
	}
	s.at[key] = now
	return false
}

// forget forgets a slice.
func (s *seenSlabs) forget(key uintptr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, key)
}

// add puts p into the file. It returns false if there is no room.
func (f *slabFile) add(key uintptr, p []byte, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if page := f.pages[key]; page != nil {
		return len(p) <= len(page.bytes)
	}
	at, ok := f.place(now)
	if !ok {
		return false
	}
	if _, err := f.file.WriteAt(p, at); err != nil {
		f.free = append(f.free, at)
		return false
	}
	f.seen.forget(key)
	page := &slabPage{bytes: p, at: at}
	page.used.Store(now.UnixNano())
	f.pages[key] = page
	if f.sweep == nil {
		f.oldest = now
		f.sweep = time.AfterFunc(slabFileKeeps, f.sweepUnused)
	}
	return true
}

// place finds room for a page: a free place, a new one, or that of a page that has
// not been used for a while.
func (f *slabFile) place(now time.Time) (int64, bool) {
	if !f.open() {
		return 0, false
	}
	if len(f.free) == 0 && f.end >= f.budget && now.Sub(f.oldest) > slabFileKeeps {
		f.forget(now)
	}
	if n := len(f.free); n > 0 {
		at := f.free[n-1]
		f.free = f.free[:n-1]
		return at, true
	}
	if f.end >= f.budget {
		return 0, false
	}
	f.end += slabFilePage
	return f.end - slabFilePage, true
}

func (f *slabFile) open() bool {
	if f.file == nil && !f.failed {
		fd, err := unix.MemfdCreate("watchtide-slabs", unix.MFD_CLOEXEC)
		if f.failed = err != nil || hugeFiles(hugeFilesSetting); f.failed {
			unix.Close(fd) // if it is valid
			return false
		}
		f.file = os.NewFile(uintptr(fd), "watchtide-slabs") // closed when it is garbage collected
	}
	return f.file != nil
}

// hugeFilesSetting says whether memory files have huge pages; see
// Documentation/admin-guide/mm/transhuge.rst of Linux.
const hugeFilesSetting = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

// hugeFiles reports whether memory files may have huge pages by default. A hole in
// such a file is zeroed in place, which would corrupt bytes that are still being
// sent.
func hugeFiles(setting string) bool {
	text, err := os.ReadFile(setting)
	if err != nil {
		return false // a kernel without huge pages
	}
	_, chosen, _ := strings.Cut(string(text), "[")
	chosen, _, _ = strings.Cut(chosen, "]")
	return chosen != "never" && chosen != "advise" && chosen != "deny"
}

// forget evicts the pages that were not used for a while.
func (f *slabFile) forget(now time.Time) {
	f.oldest = now
	for key, one := range f.pages {
		used := time.Unix(0, one.used.Load())
		if now.Sub(used) <= slabFileKeeps {
			if used.Before(f.oldest) {
				f.oldest = used
			}
			continue
		}
		delete(f.pages, key)
		// Connections may still be sending the memory, which then belongs to them: a
		// hole in the file gets new memory once it is written to.
		if err := unix.Fallocate(int(f.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, one.at, slabFilePage); err == nil {
			f.free = append(f.free, one.at)
		}
	}
}

// sweepUnused frees memory when the storm is over.
func (f *slabFile) sweepUnused() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(time.Now())
	if len(f.pages) == 0 {
		f.sweep = nil
		return
	}
	f.sweep.Reset(slabFileKeeps)
}
