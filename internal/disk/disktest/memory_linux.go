package disktest

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// Memory is how much more memory a process had at most than before, in bytes.
type Memory struct {
	// Resident is all of it, with the pages of the files that are mapped, which the system takes back when
	// it needs them.
	Resident int64
	// Anonymous is that without the pages of files, sampled each millisecond.
	Anonymous int64
}

// MemoryOf measures a function in a process that does nothing else.
func MemoryOf(fn func()) (m Memory, err error) {
	debug.FreeOSMemory()                                                              // what was freed before does not hide what fn takes
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil { // VmHWM begins here
		return m, err
	}
	all, err := resident("VmRSS")
	if err != nil {
		return m, err
	}
	anonymous, err := resident("RssAnon")
	if err != nil {
		return m, err
	}
	most := sampled(fn)
	peak, err := resident("VmHWM")
	return Memory{Resident: peak - all, Anonymous: most - anonymous}, err
}

// sampled calls fn, and returns the most anonymous memory meanwhile.
func sampled(fn func()) (most int64) {
	done := make(chan struct{})
	var sampling sync.WaitGroup
	look := func() {
		if now, err := resident("RssAnon"); err == nil {
			most = max(most, now)
		}
	}
	sampling.Go(func() {
		each := time.NewTicker(time.Millisecond)
		defer each.Stop()
		for {
			select {
			case <-each.C:
				look()
			case <-done:
				return
			}
		}
	})
	fn()
	close(done)
	sampling.Wait()
	look()
	return most
}

// resident returns what the kernel says of the memory of this process, in bytes.
func resident(what string) (int64, error) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := bytes.Cut(raw, []byte("\n"+what+":"))
	var kib int64
	if _, err := fmt.Sscan(string(after), &kib); err != nil {
		return 0, fmt.Errorf("/proc/self/status has no %s: %w", what, err)
	}
	return kib << 10, nil
}
