package commands

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
}

// contents reads the files that are followed.
func contents(names ...string) Contents {
	c := Contents{}
	for _, name := range names {
		_, _ = c.ReadFile(name)
	}
	return c
}

// ways are the ways in which a file f in a directory gets another content, each after
// its preparation.
var ways = map[string]struct {
	prepare, change func(t *testing.T, dir string)
}{
	"written in place": {
		func(t *testing.T, dir string) { writeFile(t, dir+"/f", "1") },
		func(t *testing.T, dir string) { writeFile(t, dir+"/f", "2") },
	},
	"replaced": {
		func(t *testing.T, dir string) { writeFile(t, dir+"/f", "1") },
		func(t *testing.T, dir string) {
			writeFile(t, dir+"/f.new", "2")
			rename(t, dir+"/f.new", dir+"/f")
		},
	},
	"removed": {
		func(t *testing.T, dir string) { writeFile(t, dir+"/f", "1") },
		func(t *testing.T, dir string) { remove(t, dir+"/f") },
	},
	"created": {
		func(*testing.T, string) {},
		func(t *testing.T, dir string) { writeFile(t, dir+"/f", "1") },
	},
	"as Kubernetes does": {
		func(t *testing.T, dir string) {
			writeFile(t, dir+"/..1/f", "1")
			link(t, "..1", dir+"/..data")
			link(t, "..data/f", dir+"/f")
		},
		func(t *testing.T, dir string) {
			writeFile(t, dir+"/..2/f", "2")
			link(t, "..2", dir+"/..data_tmp")
			rename(t, dir+"/..data_tmp", dir+"/..data")
			remove(t, dir+"/..1")
		},
	},
	"a link to a file elsewhere": {
		func(t *testing.T, dir string) {
			writeFile(t, dir+"/elsewhere/g", "1")
			link(t, dir+"/elsewhere/g", dir+"/f")
		},
		func(t *testing.T, dir string) { writeFile(t, dir+"/elsewhere/g", "2") },
	},
	"below a directory that is a link": {
		func(t *testing.T, dir string) {
			writeFile(t, dir+"/a/f", "1")
			writeFile(t, dir+"/b/f", "2")
			link(t, "a", dir+"/current")
			link(t, "current/f", dir+"/f")
		},
		func(t *testing.T, dir string) {
			link(t, "b", dir+"/next")
			rename(t, dir+"/next", dir+"/current")
		},
	},
}

// TestChanges makes each change twice, with the hints of the operating system.
func TestChanges(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			way.prepare(t, dir)
			w := newFileWatcher()
			defer w.Close()
			w.Follow(contents(dir + "/f"))
			way.change(t, dir)
			await(t, w)
			if c := contents(dir + "/f"); name == "removed" {
				writeFile(t, dir+"/f", "3")
			} else {
				w.Follow(c)
				writeFile(t, dir+"/f", "3") // through the links
			}
			await(t, w)
		})
	}
}

func await(t *testing.T, w *Watcher) {
	t.Helper()
	select {
	case <-w.Changed():
	case <-time.After(30 * time.Second):
		t.Fatal("the change was not noticed")
	}
}

// TestChangesWithoutHints makes the same changes where there are no hints.
func TestChangesWithoutHints(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			way.prepare(t, dir)
			synctest.Test(t, func(t *testing.T) {
				w := newWatcher(func() hints { return nil })
				defer w.Close()
				w.Follow(contents(dir + "/f"))
				expect(t, w, false)
				way.change(t, dir)
				time.Sleep(every + settle)
				expect(t, w, true)
				time.Sleep(time.Hour)
				expect(t, w, false)
			})
		})
	}
}

// expect fails unless a change was told, or none.
func expect(t *testing.T, w *Watcher, want bool) {
	t.Helper()
	synctest.Wait()
	select {
	case <-w.Changed():
		if !want {
			t.Error("a change was told, and there was none")
		}
	default:
		if want {
			t.Error("no change was told")
		}
	}
}

// scripted are hints that a test gives.
type scripted struct {
	dirs  map[string]bool
	names chan string
}

func (s *scripted) add(dir string)         { s.dirs[dir] = true }
func (s *scripted) touched() <-chan string { return s.names }
func (s *scripted) close()                 { clear(s.dirs) }

// TestSettling: files that are written one after the other are one change, which is told
// once nothing is touched for a moment, or after a while in any case.
func TestSettling(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/f", "1")
	writeFile(t, dir+"/g", "1")
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{dirs: map[string]bool{}, names: make(chan string)}
		w := newWatcher(func() hints { return s })
		defer w.Close()
		w.Follow(contents(dir+"/f", dir+"/g"))
		expect(t, w, false)
		if !maps.Equal(s.dirs, map[string]bool{dir: true}) {
			t.Errorf("hints are asked for in %v, want %s", s.dirs, dir)
		}
		writeFile(t, dir+"/f", "2")
		s.names <- dir + "/f"
		time.Sleep(settle - 1)
		expect(t, w, false)
		writeFile(t, dir+"/g", "2")
		s.names <- dir + "/g"
		time.Sleep(settle - time.Nanosecond)
		expect(t, w, false)
		time.Sleep(time.Nanosecond)
		expect(t, w, true)

		time.Sleep(settle) // it looks once more
		s.names <- dir + "/other"
		s.names <- "" // some were lost
		time.Sleep(settle)
		expect(t, w, false)

		writeFile(t, dir+"/f", "3")
		for range settlePatience / settle * 2 {
			s.names <- dir + "/f"
			time.Sleep(settle / 2)
		}
		expect(t, w, true)
	})
}

// TestFollowNoticesWhatChangedBefore: between reading a file and following it nothing is
// missed, and a pipe, which can be read once only, is not followed.
func TestFollowNoticesWhatChangedBefore(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/f", "1")
	c := contents(dir+"/f", os.DevNull)
	if _, followed := c[os.DevNull]; followed || len(c) != 1 {
		t.Errorf("%d files are followed, want f", len(c))
	}
	writeFile(t, dir+"/f", "2")
	w := newFileWatcher()
	defer w.Close()
	w.Follow(c)
	await(t, w)
}

// TestReadAgain: a device would be read forever, or wait for its writer. It is followed, so that
// a file in its place is noticed.
func TestReadAgain(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/f", "1")
	c := Contents{}
	if data, err := c.ReadAgain(dir + "/f"); err != nil || string(data) != "1" || len(c) != 1 {
		t.Errorf("%q, %v, %d recorded", data, err, len(c))
	}
	remove(t, dir+"/f")
	link(t, os.DevNull, dir+"/f")
	c = Contents{}
	if _, err := c.ReadAgain(dir + "/f"); err == nil || !c.equal(c.now()) {
		t.Errorf("a device: %v, recorded %v", err, c)
	}
	remove(t, dir+"/f")
	writeFile(t, dir+"/f", "1")
	if c.equal(c.now()) {
		t.Errorf("a file in place of the device is no change of %v", c)
	}
}

// TestStepsOfACircle: links that lead to each other have an end.
func TestStepsOfACircle(t *testing.T) {
	dir := t.TempDir()
	link(t, "b", dir+"/a")
	link(t, "a", dir+"/b")
	found := map[string]struct{}{}
	steps(dir+"/a", found)
	if !maps.Equal(found, map[string]struct{}{dir + "/a": {}, dir + "/b": {}}) {
		t.Errorf("found %v", found)
	}
}
