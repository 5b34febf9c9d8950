package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// disk is a real directory, written in the way of other programs. Its methods
// fail the test, or return an error where the conformance suite wants one.
type disk struct {
	t   *testing.T
	dir string
}

func newDisk(t *testing.T) disk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := disk{t, filepath.Join(dir, "resources")}
	d.mkdir("")
	return d
}

func (d disk) path(name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }

func (d disk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d disk) mkdir(name string) {
	d.t.Helper()
	d.must(os.MkdirAll(d.path(name), 0o755))
}

// write writes in place.
func (d disk) write(name, text string) {
	d.t.Helper()
	d.must(os.MkdirAll(filepath.Dir(d.path(name)), 0o755))
	d.must(os.WriteFile(d.path(name), []byte(text), 0o644))
}

// replace writes to another file and renames it over the old one.
func (d disk) replace(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(d.path(name)), 0o755); err != nil {
		return err
	}
	temporary := d.path(name) + ".tmp" // many programs use such a name
	if err := os.WriteFile(temporary, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, d.path(name))
}

func (d disk) remove(name string) {
	d.t.Helper()
	d.must(os.RemoveAll(d.path(name)))
}

func (d disk) rename(from, to string) {
	d.t.Helper()
	d.must(os.Rename(d.path(from), d.path(to)))
}

func (d disk) link(target, name string) {
	d.t.Helper()
	d.must(os.MkdirAll(filepath.Dir(d.path(name)), 0o755))
	d.must(os.Symlink(target, d.path(name)))
}

// relink atomically changes the target of a link.
func (d disk) relink(target, name string) error {
	temporary := d.path(name) + "_tmp"
	if err := os.Symlink(target, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, d.path(name))
}

// source is a source of the directory with shorter waits than the defaults.
func (d disk) source(c Config) *Source {
	d.t.Helper()
	c.Dir = d.dir
	s, err := New(c)
	d.must(err)
	s.quiet = 5 * time.Millisecond
	return s
}

// generations is a directory that is a symbolic link to one of many, as git-sync
// and others leave it: each write is a new one.
type generations struct {
	disk
	count atomic.Int64
	files map[string]string
}

func newGenerations(t *testing.T) *generations {
	t.Helper()
	d := newDisk(t)
	d.remove("")
	d.dir = filepath.Dir(d.dir)
	g := &generations{disk: d, files: map[string]string{}}
	d.must(g.publish())
	g.dir = d.path("current")
	return g
}

// publish makes a generation of the files and removes the one before.
func (g *generations) publish() error {
	base := g.dir
	if filepath.Base(base) == "current" {
		base = filepath.Dir(base)
	}
	next := disk{g.t, filepath.Join(base, fmt.Sprint("generation-", g.count.Add(1)))}
	for name, text := range g.files {
		if err := next.replace(name, text); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(next.dir, 0o755); err != nil {
		return err
	}
	at := disk{g.t, base}
	before, err := os.Readlink(at.path("current"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := at.relink(filepath.Base(next.dir), "current"); err != nil {
		return err
	}
	if before == "" {
		return nil
	}
	return os.RemoveAll(at.path(before))
}
