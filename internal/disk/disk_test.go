package disk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// openedByChild names the file that a child process of a test opens.
const openedByChild = "WATCHTIDE_TEST_OPEN"

// holdOpen is the child: it opens a file, says so, and ends when its input does.
func holdOpen(path string) {
	f, err := Open(config(path))
	fmt.Println("opened:", err)
	_, _ = io.Copy(io.Discard, os.Stdin)
	if f != nil {
		_ = f.Close()
	}
	os.Exit(0)
}

func config(path string) Config { return Config{Path: path, Kind: "test", Format: 3} }

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "a.db") }

func mustOpen(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(config(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// content is what a file has.
type content struct {
	sequence uint64
	values   map[string]string
}

func (c content) equal(o content) bool {
	return c.sequence == o.sequence && maps.Equal(c.values, o.values)
}

var things = []byte("things")

// put writes values as one transaction with a number.
func put(f *File, sequence uint64, values map[string]string) error {
	return f.Update(func(tx *Tx) error {
		b, err := tx.MakeBucket(things)
		if err != nil {
			return err
		}
		for key, value := range values {
			if value == "" {
				err = b.Delete([]byte(key))
			} else {
				err = b.Put([]byte(key), []byte(value))
			}
			if err != nil {
				return err
			}
		}
		return tx.SetSequence(sequence)
	})
}

func read(f *File) (c content, err error) {
	c.values = map[string]string{}
	err = f.View(func(tx *Tx) error {
		if c.sequence, err = tx.Sequence(); err != nil {
			return err
		}
		b := tx.Bucket(things)
		if b == nil {
			return nil
		}
		return b.Each(func(key, value []byte) error {
			c.values[string(key)] = string(value)
			return nil
		})
	})
	return c, err
}

func mustPut(t testing.TB, f *File, sequence uint64, values map[string]string) {
	t.Helper()
	if err := put(f, sequence, values); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, f *File) content {
	t.Helper()
	c, err := read(f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhatIsWrittenLasts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "a.db")
	f := mustOpen(t, path)
	mustPut(t, f, 7, map[string]string{"a": "1", "b": strings.Repeat("x", 100_000)})
	mustPut(t, f, 9, map[string]string{"a": "", "c": "3"})
	want := mustRead(t, f)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, path)
	if got := mustRead(t, again); !got.equal(want) || got.sequence != 9 || len(got.values) != 2 {
		t.Errorf("%d values at %d, want %d at %d", len(got.values), got.sequence, len(want.values), want.sequence)
	}
	if why := again.Restored(); why != "" {
		t.Errorf("the file counts as a copy: %s", why)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v; want 0600", info.Mode(), err)
	}
}

func TestARefusedTransactionChangesNothing(t *testing.T) {
	f := mustOpen(t, newPath(t))
	mustPut(t, f, 2, map[string]string{"a": "1"})
	if err := put(f, 1, map[string]string{"a": "2"}); err == nil || errors.Is(err, ErrFailed) {
		t.Errorf("number 1 after 2: error %v", err)
	}
	if got := mustRead(t, f); got.values["a"] != "1" || f.Err() != nil {
		t.Errorf("got %v, error %v", got, f.Err())
	}
}

// TestOneProcessHasTheFile: another one is told which.
func TestOneProcessHasTheFile(t *testing.T) {
	path := newPath(t)
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), openedByChild+"="+path)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "opened: <nil>\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	_, err = Open(config(path))
	var used *InUseError
	if !errors.As(err, &used) || used.PID != child.Process.Pid || !strings.Contains(err.Error(), fmt.Sprint("process ", used.PID)) {
		t.Errorf("error %v, want process %d", err, child.Process.Pid)
	}
	_ = in.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path)
}

func TestFilesThatAreRefused(t *testing.T) {
	valid := func(t *testing.T, path string) {
		f := mustOpen(t, path)
		mustPut(t, f, 1, map[string]string{"a": "1"})
		_ = f.Close()
	}
	for name, test := range map[string]struct {
		make   func(t *testing.T, path string)
		config Config
		want   string
	}{
		"a link": {make: func(t *testing.T, path string) {
			valid(t, path+".real")
			if err := os.Symlink(path+".real", path); err != nil {
				t.Fatal(err)
			}
		}, want: "is a symbolic link"},
		"a linked state": {make: func(t *testing.T, path string) {
			if err := os.Symlink(path+".elsewhere", path+".state"); err != nil {
				t.Fatal(err)
			}
		}, want: "is a symbolic link"},
		"a folder": {make: func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, want: "is no file"},
		"others can read it": {make: func(t *testing.T, path string) {
			valid(t, path)
			if err := os.Chmod(path, 0o604); err != nil {
				t.Fatal(err)
			}
		}, want: "chmod 600"},
		"everybody can replace it": {make: func(t *testing.T, path string) {
			if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
		}, want: "chmod o-w"},
		"no folder": {config: Config{Path: "/nonexistent/folder/a.db", Kind: "test", Format: 3}, want: "there is no folder /nonexistent/folder"},
		"text": {make: func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("text ", 5000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, want: "neither page 0 nor page 1"},
		"another kind":   {make: valid, config: Config{Kind: "journal", Format: 3}, want: "is the file of a test, not of a journal"},
		"a newer format": {make: valid, config: Config{Kind: "test", Format: 2}, want: "has format 3, and this version knows formats up to 2"},
		"a file that must exist": {
			config: Config{Kind: "test", Format: 3, MustExist: true}, want: "no such file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := test.config
			if c.Path == "" {
				c.Path = newPath(t)
			}
			if c.Kind == "" {
				c.Kind, c.Format = "test", 3
			}
			if test.make != nil {
				test.make(t, c.Path)
			}
			f, err := Open(c)
			if err == nil {
				_ = f.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), c.Path) {
				t.Errorf("error %q, want %q and the path", err, test.want)
			}
		})
	}
}

// TestOpenToReadChangesNothing: not even the mode.
func TestOpenToReadChangesNothing(t *testing.T) {
	path := newPath(t)
	_ = mustOpen(t, path).Close()
	if err := os.Chmod(path, 0o660); err != nil {
		t.Fatal(err)
	}
	f, err := OpenToRead(config(path))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, error %v; want 0660", info.Mode(), err)
	}
}

// TestOpenToReadWhileItIsOpen: the file is not read, since its pages change.
func TestOpenToReadWhileItIsOpen(t *testing.T) {
	path := newPath(t)
	mustOpen(t, path)
	if err := os.Truncate(path, 5000); err != nil { // it would be found to be damaged
		t.Fatal(err)
	}
	var used *InUseError
	if _, err := OpenToRead(config(path)); !errors.As(err, &used) || used.PID != os.Getpid() {
		t.Errorf("error %v, want process %d", err, os.Getpid())
	}
}

// TestCutOffWhileItIsOpened: however often the power is lost between the first transaction and the record beside
// the file, it stays the file that was there.
func TestCutOffWhileItIsOpened(t *testing.T) {
	c := config(newPath(t))
	_ = mustOpen(t, c.Path).Close()
	for n := range 4 {
		var beside []byte
		c.BeforeCommit = func() (err error) {
			beside, err = os.ReadFile(c.Path + ".state")
			return err
		}
		f, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		if why := f.Restored(); why != "" {
			t.Errorf("after %d times: %s", n, why)
		}
		if err := errors.Join(f.Close(), os.WriteFile(c.Path+".state", beside, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheGroupLosesItsRights: a volume of Kubernetes gives them at each start.
func TestTheGroupLosesItsRights(t *testing.T) {
	path := newPath(t)
	_ = mustOpen(t, path).Close()
	if err := os.Chmod(path, 0o660); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v; want 0600", info.Mode(), err)
	}
}

// TestAfterAFailedWriteNothingIsTaken, although the next one would succeed: what the disk has is not
// known. Opened again, the file has what was answered.
func TestAfterAFailedWriteNothingIsTaken(t *testing.T) {
	path := newPath(t)
	var now error
	c := config(path)
	c.BeforeCommit = func() error { return now }
	f, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mustPut(t, f, 1, map[string]string{"a": "1"})
	broken := errors.New("input/output error")
	now = broken
	if err := put(f, 2, map[string]string{"a": "2"}); !errors.Is(err, ErrFailed) || !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	now = nil
	if err := put(f, 3, map[string]string{"a": "3"}); !errors.Is(err, ErrFailed) {
		t.Errorf("the next write: error %v", err)
	}
	if got := mustRead(t, f); got.values["a"] != "1" {
		t.Errorf("got %v", got)
	}
	_ = f.Close()
	again := mustOpen(t, path)
	mustPut(t, again, 2, map[string]string{"a": "2"})
}

// TestAFullDisk is a failed write.
func TestAFullDisk(t *testing.T) {
	c := config(newPath(t))
	c.MaxBytes = 1 << 20
	f, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var taken uint64
	for n := uint64(1); ; n++ {
		if err = put(f, n, map[string]string{fmt.Sprint("k", n): strings.Repeat("x", 50_000)}); err != nil {
			break
		}
		taken = n
	}
	if !errors.Is(err, ErrFailed) || taken < 5 {
		t.Fatalf("%d writes, error %v", taken, err)
	}
	_ = f.Close()
	c.MaxBytes = 0
	again, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := mustRead(t, again); got.sequence != taken || len(got.values) != int(taken) {
		t.Errorf("%d values up to %d, want %d", len(got.values), got.sequence, taken)
	}
}

// TestCompaction: a file that is mostly free is smaller after it was opened, and has the same.
func TestCompaction(t *testing.T) {
	path := newPath(t)
	f := mustOpen(t, path)
	for n := range uint64(64) {
		mustPut(t, f, n+1, map[string]string{fmt.Sprint("k", n): strings.Repeat("x", 100_000)})
	}
	for n := range uint64(60) {
		mustPut(t, f, n+65, map[string]string{fmt.Sprint("k", n): ""})
	}
	want := mustRead(t, f)
	before, free := f.Sizes()
	if free < before/2 {
		t.Fatalf("%d of %d bytes are free", free, before)
	}
	_ = f.Close()
	if err := os.WriteFile(path+unfinished, []byte("left by a crash"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, path)
	if size, _ := again.Sizes(); size > before/4 {
		t.Errorf("%d bytes, it had %d", size, before)
	}
	if got := mustRead(t, again); !got.equal(want) || again.Restored() != "" {
		t.Errorf("%d values at %d, want %d at %d; a copy: %q", len(got.values), got.sequence, len(want.values), want.sequence, again.Restored())
	}
	mustPut(t, again, 200, map[string]string{"more": "1"})
	_ = again.Close()
	if last := mustOpen(t, path); last.Restored() != "" || mustRead(t, last).values["more"] != "1" {
		t.Errorf("after compaction and a write: a copy: %q", last.Restored())
	}
}

// TestCopiesAreRecognized, and the file itself is not taken for one, whatever happened to it.
func TestCopiesAreRecognized(t *testing.T) {
	files := []string{"", ".state"}
	duplicate := func(t *testing.T, from, to string) { // in place, as cp does
		raw, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	backup := func(t *testing.T, path string) {
		for _, end := range files {
			duplicate(t, path+end, path+end+".bak")
		}
	}
	write := func(t *testing.T, path string, n uint64) {
		f := mustOpen(t, path)
		mustPut(t, f, n, map[string]string{"a": fmt.Sprint(n)})
		_ = f.Close()
	}
	for name, test := range map[string]struct {
		change func(t *testing.T, path string)
		want   bool
	}{
		"closed and opened": {func(t *testing.T, path string) { write(t, path, 2) }, false},
		"renamed and back": {func(t *testing.T, path string) {
			if os.Rename(path, path+"2") != nil || os.Rename(path+"2", path) != nil {
				t.Fatal("rename")
			}
		}, false},
		"moved with its state": {func(t *testing.T, path string) {
			for _, end := range files {
				if os.Rename(path+end, path+".x"+end) != nil || os.Rename(path+".x"+end, path+end) != nil {
					t.Fatal("rename")
				}
			}
		}, false},
		"left by a crash after the file, before its state": {func(t *testing.T, path string) {
			duplicate(t, path+".state", path+".state.bak")
			write(t, path, 2)
			duplicate(t, path+".state.bak", path+".state")
		}, false},
		"the file was put back": {func(t *testing.T, path string) {
			backup(t, path)
			write(t, path, 2)
			duplicate(t, path+".bak", path)
		}, true},
		"the file was put back, after several starts": {func(t *testing.T, path string) {
			backup(t, path)
			for range 3 {
				_ = mustOpen(t, path).Close()
			}
			duplicate(t, path+".bak", path)
		}, true},
		"both were put back as new files": {func(t *testing.T, path string) {
			backup(t, path)
			write(t, path, 2)
			for _, end := range files {
				_ = os.Rename(path+end, path+end+".old")
				_ = os.Rename(path+end+".bak", path+end)
			}
		}, true},
		"without its state": {func(t *testing.T, path string) { _ = os.Remove(path + ".state") }, true},
		"a damaged state": {func(t *testing.T, path string) {
			if err := os.WriteFile(path+".state", []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, true},
		"another file": {func(t *testing.T, path string) {
			write(t, path+".other", 5)
			duplicate(t, path+".other", path)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			write(t, path, 1)
			test.change(t, path)
			f := mustOpen(t, path)
			if got := f.Restored() != ""; got != test.want {
				t.Errorf("a copy: %t (%q), want %t", got, f.Restored(), test.want)
			}
			_ = f.Close()
			if again := mustOpen(t, path); again.Restored() != "" {
				t.Errorf("after it was found out, it is still a copy: %q", again.Restored())
			}
		})
	}
}

// TestACopyOfAnOpenFile that was taken while a process wrote, and put back after that was killed.
func TestACopyOfAnOpenFile(t *testing.T) {
	path := newPath(t)
	f := mustOpen(t, path)
	mustPut(t, f, 1, map[string]string{"a": "1"})
	early, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, f, 2, map[string]string{"a": "2"})
	_ = f.db.Close() // as a process that is killed does
	f.state.close()
	f.state = nil
	if err := os.WriteFile(path, early, 0o600); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, path)
	if again.Restored() == "" {
		t.Error("a copy from before the last write was not recognized")
	}
}
