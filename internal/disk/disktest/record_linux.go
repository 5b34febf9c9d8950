package disktest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Recording is what a process did to the files in a folder, in its order.
type Recording struct {
	folder string // its name
	root   uint64 // its number
	keep   string // a folder with a second name for each file, so that none is ever gone
	first  *system
	ops    []op
}

// op is one call that changed a file or a folder, or made it last. Files and folders have the numbers that the file
// system gives them.
type op struct {
	kind   opKind
	file   uint64 // that it changes
	at     int64  // of a write, and the length of a truncation
	data   []byte
	name   string // in a folder
	to     string // of a rename
	entry  uint64 // of a name that is new
	folder bool   // what is new is a folder
}

type opKind string

const (
	opWrite    opKind = "write"
	opTruncate opKind = "truncate"
	opSync     opKind = "sync"
	opLink     opKind = "link"
	opUnlink   opKind = "unlink"
	opRename   opKind = "rename"
	opMark     opKind = "mark"
)

// Mark tells the recording of this process how far it got.
func Mark(text string) { fmt.Print(markPrefix + text + "\n") }

const markPrefix = "mark "

// Record runs this test binary with a variable in its environment, by which its TestMain knows that it is the
// process to record, and returns what it does in a folder. It is followed by ptrace, so that what counts are its
// calls of the system, whatever it calls them for. A machine that does not permit that skips the test.
func Record(t *testing.T, folder, variable string) *Recording {
	t.Helper()
	r := &Recording{folder: folder, keep: t.TempDir(), first: newSystem()}
	if err := r.begin(folder); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // the tracer is one thread
	defer runtime.UnlockOSThread()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p, err := os.StartProcess(os.Args[0], os.Args[:1], &os.ProcAttr{
		Env: append(os.Environ(), variable), Files: []*os.File{null, null, os.Stderr},
		Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
	})
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		t.Skipf("a process cannot be followed here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	tr := tracer{Recording: r, pid: p.Pid, calls: map[int]*call{}}
	if err := tr.run(); err != nil {
		_ = syscall.Kill(p.Pid, syscall.SIGKILL)
		t.Fatal(err)
	}
	return r
}

// begin takes what is there already.
func (r *Recording) begin(folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		n, err := numberOf(path)
		switch {
		case err != nil:
			return err
		case path == folder:
			r.root = n
		default:
			parent, err := numberOf(filepath.Dir(path))
			if err != nil {
				return err
			}
			r.first.folders[parent].now[d.Name()] = n
			r.first.folders[parent].lasting[d.Name()] = n
		}
		if d.IsDir() {
			r.first.folders[n] = newFolder()
			return nil
		}
		raw, err := os.ReadFile(path)
		r.first.files[n] = &file{lasting: raw, now: raw}
		return errors.Join(err, r.keepFile(path, n))
	})
}

func (r *Recording) kept(n uint64) string { return filepath.Join(r.keep, fmt.Sprint(n)) }

func (r *Recording) keepFile(path string, n uint64) error { return os.Link(path, r.kept(n)) }

func numberOf(path string) (uint64, error) {
	var s syscall.Stat_t
	err := syscall.Stat(path, &s)
	return s.Ino, err
}

// tracer follows one process.
type tracer struct {
	*Recording
	pid   int
	calls map[int]*call // under way, by thread
	known map[uint64]bool
}

// call is one call of the system.
type call struct {
	number uint64
	args   [6]uint64
	op     *op    // what it does if it succeeds; nil: nothing
	path   string // of what it makes
}

// callInfo is struct ptrace_syscall_info.
type callInfo struct {
	kind   uint8
	_      [3]byte
	arch   uint32
	ip, sp uint64
	data   [8]uint64
}

const (
	getCallInfo = 0x420e
	callBegins  = 1
	callEnds    = 2
)

func (t *tracer) run() error {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(t.pid, &status, 0, nil); err != nil {
		return err
	}
	const options = syscall.PTRACE_O_TRACESYSGOOD | syscall.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	if err := syscall.PtraceSetOptions(t.pid, options); err != nil {
		return err
	}
	t.known = map[uint64]bool{}
	for n := range t.first.files {
		t.known[n] = true
	}
	for n := range t.first.folders {
		t.known[n] = true
	}
	seen := map[int]bool{t.pid: true}
	for thread := t.pid; ; {
		signal := 0
		switch {
		case !status.Stopped():
		case status.StopSignal() == syscall.SIGTRAP|0x80:
			// Another thread may have ended the process since this one stopped.
			if err := t.stopped(thread); err != nil && !ended(thread) {
				return err
			}
		case status.StopSignal() == syscall.SIGTRAP || status.StopSignal() == syscall.SIGSTOP && !seen[thread]:
			seen[thread] = true
		default:
			signal = int(status.StopSignal())
		}
		if status.Stopped() {
			seen[thread] = true
			if err := syscall.PtraceSyscall(thread, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
		var err error
		if thread, err = syscall.Wait4(-t.pid, &status, syscall.WALL, nil); err != nil {
			return err
		}
		if thread == t.pid && (status.Exited() || status.Signaled()) {
			if status.ExitStatus() != 0 {
				return fmt.Errorf("the process that is recorded has ended with %v", status)
			}
			return nil
		}
	}
}

// infoOf returns the call of a thread that is stopped.
func infoOf(thread int) (info callInfo, err error) {
	_, _, no := syscall.Syscall6(syscall.SYS_PTRACE, getCallInfo, uintptr(thread), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if no != 0 {
		return info, fmt.Errorf("following a process: %w", no)
	}
	return info, nil
}

// ended reports whether a thread has ended since it stopped.
func ended(thread int) bool {
	_, err := infoOf(thread)
	return errors.Is(err, syscall.ESRCH)
}

// stopped handles a thread that enters or leaves a call of the system.
func (t *tracer) stopped(thread int) error {
	info, err := infoOf(thread)
	if err != nil {
		return err
	}
	switch info.kind {
	case callBegins:
		c := &call{number: info.data[0], args: [6]uint64(info.data[1:7])}
		t.calls[thread] = c
		return t.begins(c)
	case callEnds:
		c := t.calls[thread]
		delete(t.calls, thread)
		if c == nil || c.op == nil || int64(info.data[0]) < 0 {
			return nil
		}
		return t.ends(c)
	}
	return nil
}

// begins finds out what a call is about to do.
func (t *tracer) begins(c *call) error {
	switch c.number {
	case unix.SYS_PWRITE64:
		return t.onFile(c, &op{kind: opWrite, at: int64(c.args[3])})
	case unix.SYS_FTRUNCATE:
		return t.onFile(c, &op{kind: opTruncate, at: int64(c.args[1])})
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		return t.onFile(c, &op{kind: opSync})
	case unix.SYS_WRITE:
		if c.args[0] == 1 {
			return t.said(c)
		}
		return t.onFile(c, nil)
	case unix.SYS_FALLOCATE, unix.SYS_PWRITEV, unix.SYS_WRITEV, unix.SYS_COPY_FILE_RANGE:
		return t.onFile(c, nil)
	case unix.SYS_OPENAT:
		if c.args[2]&unix.O_CREAT != 0 {
			return t.onName(c, c.args[1], &op{kind: opLink})
		}
	case unix.SYS_MKDIRAT:
		return t.onName(c, c.args[1], &op{kind: opLink, folder: true})
	case unix.SYS_UNLINKAT:
		return t.onName(c, c.args[1], &op{kind: opUnlink})
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		to, err := t.text(c.args[3])
		if err != nil {
			return err
		}
		return t.onName(c, c.args[1], &op{kind: opRename, to: filepath.Base(to)})
	}
	return nil
}

// onFile prepares what a call does to an open file. nil: it must do nothing to one that is recorded.
func (t *tracer) onFile(c *call, what *op) error {
	n, err := numberOf(fmt.Sprintf("/proc/%d/fd/%d", t.pid, int32(c.args[0])))
	if err != nil || !t.known[n] {
		return nil
	}
	if what == nil {
		return fmt.Errorf("call %d changes a file, and is not recorded", c.number)
	}
	if what.file = n; what.kind == opWrite {
		if what.data, err = t.memory(c.args[1], c.args[2]); err != nil {
			return err
		}
	}
	c.op = what
	return nil
}

// onName prepares what a call does to a name in a folder.
func (t *tracer) onName(c *call, address uint64, what *op) error {
	path, err := t.text(address)
	if err != nil {
		return err
	}
	parent, err := numberOf(filepath.Dir(path))
	if err != nil || !t.known[parent] {
		return nil
	}
	if _, err := os.Lstat(path); err == nil && what.kind == opLink {
		return nil // it is there already
	}
	what.file, what.name = parent, filepath.Base(path)
	c.op, c.path = what, path
	return nil
}

// said records a mark.
func (t *tracer) said(c *call) error {
	text, err := t.memory(c.args[1], c.args[2])
	if rest, is := strings.CutPrefix(string(text), markPrefix); err == nil && is {
		c.op = &op{kind: opMark, name: strings.TrimSpace(rest)}
	}
	return err
}

// ends records what a call has done.
func (t *tracer) ends(c *call) error {
	if c.op.kind == opLink {
		n, err := numberOf(c.path)
		if err != nil {
			return err
		}
		c.op.entry, t.known[n] = n, true
		if !c.op.folder {
			if err := t.keepFile(c.path, n); err != nil {
				return err
			}
		}
	}
	t.ops = append(t.ops, *c.op)
	return nil
}

// memory reads the memory of the process.
func (t *tracer) memory(address, n uint64) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw := make([]byte, n)
	_, err = f.ReadAt(raw, int64(address))
	return raw, err
}

// text reads a text of C.
func (t *tracer) text(address uint64) (string, error) {
	var all []byte
	for n := uint64(0); ; n++ {
		b, err := t.memory(address+n, 1)
		if err != nil {
			return "", err
		}
		if b[0] == 0 {
			return string(bytes.Clone(all)), nil
		}
		all = append(all, b[0])
	}
}
