package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/shirou/gopsutil/v4/disk"

	journalfile "github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/internal/journal"
)

// ExamineState examines a folder in which a gateway keeps its journal, on this machine, and changes nothing.
func ExamineState(dir string) []Finding {
	s := &stateFolder{dir: dir, free: freeBytes}
	s.examine()
	return s.found
}

// stateFolder is a folder that is examined.
type stateFolder struct {
	dir   string
	free  func(dir string) (uint64, error)
	found []Finding
}

func (s *stateFolder) report(r Result, mend, format string, args ...any) {
	s.found = append(s.found, Finding{Check: State, Result: r, Found: fmt.Sprintf(format, args...), Mend: mend})
}

// examine reports at least one finding.
func (s *stateFolder) examine() {
	info, err := os.Stat(s.dir)
	parent, _ := os.Stat(filepath.Dir(filepath.Clean(s.dir)))
	switch {
	case errors.Is(err, os.ErrNotExist) && parent != nil && parent.IsDir():
		s.report(Unknown, "", "there is no folder %s yet: the gateway makes it", s.dir)
		return
	case err != nil:
		s.report(Problem, "make the folder, for the user that runs the gateway, or correct state.dir", "%v", err)
		return
	case !info.IsDir():
		s.report(Problem, "set state.dir to a folder", "%s is no folder", s.dir)
		return
	}
	if err := journalfile.CheckFolder(s.dir); err != nil {
		s.refused(err)
		return
	}
	s.examineFile()
	aside := filepath.Join(s.dir, journal.AsideName)
	if _, err := os.Lstat(aside); err == nil {
		s.report(Problem, "read in the log of the gateway why. A gateway with this folder removes the file after a day", "a journal was set aside as %s, so that watches began without it", aside)
	}
}

// examineFile examines the journal itself.
func (s *stateFolder) examineFile() {
	path := filepath.Join(s.dir, journal.FileName)
	r, err := journal.Check(s.dir)
	var used *journalfile.InUseError
	var damaged *journalfile.DamagedError
	var foreign *journalfile.ForeignError
	switch {
	case errors.Is(err, os.ErrNotExist):
		s.report(Unknown, "", "there is no journal in %s yet", s.dir)
		s.space(0)
	case errors.As(err, &used):
		size := int64(0)
		if info, err := os.Lstat(path); err == nil {
			size = info.Size()
		}
		s.report(OK, "", "the journal in %s has %s; %v, so it was not read", s.dir, megabytes(size), strings.SplitN(used.Error(), ":", 2)[0])
		s.space(size)
	case errors.As(err, &damaged):
		s.report(Problem, "nothing: the gateway sets it aside at the next start, and watches begin without it. Look for faults of the disk", "%s is damaged: %s", path, shortened(damaged.What))
	case errors.As(err, &foreign):
		s.report(Problem, "use the version that wrote it, or a newer one, or another folder: this one sets the file aside", "%s", foreign.Error())
	case err != nil:
		s.refused(err)
	default:
		s.report(OK, "", "the journal in %s has %s, of which %s are free; watches that it has up to their end: %d of %d; no process has it open",
			s.dir, megabytes(r.FileBytes), megabytes(r.FreeBytes), r.Ended, r.Watches)
		s.space(r.FileBytes)
	}
}

// refused reports why a gateway could not use the folder. The error ends with what to do.
func (s *stateFolder) refused(err error) {
	text, mend := err.Error(), "let the user that runs the gateway own the folder and the files, alone"
	if at := strings.LastIndex(text, ": "); at >= 0 {
		text, mend = text[:at], text[at+2:]
	}
	s.report(Problem, mend, "%s", text)
}

// leastFree is how much must be free in any case.
const leastFree = 64 << 20

// space compares the free space of the disk with the size of the journal. At a start, a file that is mostly
// free is copied into a new one, and both exist until the copy is complete. A new epoch of a watch is
// written while the pages of the old one are still in use.
func (s *stateFolder) space(size int64) {
	free, err := s.free(s.dir)
	want := uint64(max(size, leastFree))
	switch {
	case err != nil:
		s.report(Unknown, "", "how much is free on the disk of %s: %v", s.dir, err)
	case free < want:
		s.report(Problem, "make room: a journal that cannot be written is not used after a restart", "%s are free on the disk of %s, want %s", megabytes(int64(min(free, 1<<62))), s.dir, megabytes(int64(want)))
	}
}

// freeBytes returns how much this process may still write to the disk of a folder.
func freeBytes(dir string) (uint64, error) {
	u, err := disk.Usage(dir)
	if err != nil {
		return 0, err
	}
	return u.Free, nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
