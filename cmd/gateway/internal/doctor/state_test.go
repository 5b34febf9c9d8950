package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/internal/journal"
)

// kept makes a folder with a journal.
func kept(t *testing.T) (dir string) {
	dir = filepath.Join(t.TempDir(), "state")
	j, err := journal.Open(journal.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
	return dir
}

func much(string) (uint64, error) { return 1 << 40, nil }

func examined(dir string, free func(string) (uint64, error)) []Finding {
	s := &stateFolder{dir: dir, free: free}
	s.examine()
	return s.found
}

// stateFaults are faults of a folder of a journal, and what is found.
var stateFaults = map[string]struct {
	make func(t *testing.T, dir string)
	free func(string) (uint64, error)
	want string // "": no problem
}{
	"none":      {},
	"no folder": {make: func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) }},
	"no file":   {make: func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, journal.FileName))) }},
	"no parent": {make: func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Dir(dir))) }, want: "no such file"},
	"a file in its place": {make: func(t *testing.T, dir string) {
		must(t, os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
	}, want: "is no folder"},
	"everybody may write": {make: func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o777)) }, want: "everybody may replace files"},
	"others may read":     {make: func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, journal.FileName), 0o644)) }, want: "has mode 0644"},
	"a link": {make: func(t *testing.T, dir string) {
		path := filepath.Join(dir, journal.FileName)
		must(t, os.Rename(path, path+".real"), os.Symlink(path+".real", path))
	}, want: "is a symbolic link"},
	"damaged": {make: func(t *testing.T, dir string) {
		must(t, os.Truncate(filepath.Join(dir, journal.FileName), 5000))
	}, want: "is damaged"},
	"of a newer version": {make: func(t *testing.T, dir string) {
		path := filepath.Join(dir, journal.FileName)
		must(t, os.Remove(path))
		f, err := disk.Open(disk.Config{Path: path, Kind: "journal", Format: 99})
		must(t, err, f.Close())
	}, want: "format 99"},
	"set aside": {make: func(t *testing.T, dir string) {
		must(t, os.WriteFile(filepath.Join(dir, journal.AsideName), nil, 0o600))
	}, want: "was set aside"},
	"a full disk":          {free: func(string) (uint64, error) { return 1 << 20, nil }, want: "1.0 MB are free"},
	"an unknown free size": {free: func(string) (uint64, error) { return 0, errors.New("not supported") }},
	"open in a process": {make: func(t *testing.T, dir string) {
		j, err := journal.Open(journal.Config{Dir: dir})
		must(t, err)
		t.Cleanup(j.Close)
	}},
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestState examines folders with a fault each.
func TestState(t *testing.T) {
	for name, fault := range stateFaults {
		t.Run(name, func(t *testing.T) {
			dir := kept(t)
			if fault.make != nil {
				fault.make(t, dir)
			}
			free := fault.free
			if free == nil {
				free = much
			}
			var problems []string
			found := examined(dir, free)
			for _, f := range found {
				if f.Check != State || f.Found == "" || (f.Result == Problem) != (f.Mend != "") {
					t.Errorf("%+v: want advice about a problem, and about nothing else", f)
				}
				if f.Result == Problem {
					problems = append(problems, f.Found)
				}
			}
			if len(found) == 0 || len(problems) != min(len(fault.want), 1) || !strings.Contains(strings.Join(problems, " "), fault.want) {
				t.Errorf("found %+v, want a problem with %q", found, fault.want)
			}
		})
	}
}

// TestStateChangesNothing: a folder is as it was.
func TestStateChangesNothing(t *testing.T) {
	dir := kept(t)
	path := filepath.Join(dir, journal.FileName)
	must(t, os.Chmod(path, 0o660))
	before, err := os.ReadFile(path)
	must(t, err)
	for _, f := range ExamineState(dir) {
		if f.Result == Problem {
			t.Errorf("%+v", f)
		}
	}
	after, err := os.ReadFile(path)
	must(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 || string(after) != string(before) {
		t.Errorf("the file was changed: mode %v, error %v", info.Mode(), err)
	}
	if err := os.RemoveAll(dir); err != nil || len(ExamineState(dir)) != 1 {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

// TestStateOpenInAProcess names the process, and does not read the file.
func TestStateOpenInAProcess(t *testing.T) {
	dir := kept(t)
	j, err := journal.Open(journal.Config{Dir: dir})
	must(t, err)
	defer j.Close()
	if found := examined(dir, much); len(found) != 1 || found[0].Result != OK || !strings.Contains(found[0].Found, "has it open") {
		t.Errorf("found %+v", found)
	}
}
