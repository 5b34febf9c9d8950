package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// maxDirs bounds the number of paths that links to directories with links can
// make of a few files.
const maxDirs = 100_000

// scan is one pass over the whole directory.
type scan struct {
	ctx   context.Context
	root  *os.Root
	limit int64
	tree  *tree
	read  map[string]struct{} // files to read whatever their stamp
	watch func(dir string)    // called before a directory is listed, so that no change is missed

	dirs     int
	links    int
	problems map[string]error // of directories and links
}

// all scans everything. An error means that the directory as a whole cannot be
// read.
func (s *scan) all() error {
	s.tree.scan++
	s.problems = map[string]error{}
	if err := s.dir(place{name: ".", real: "."}); err != nil {
		return err
	}
	s.tree.sweep()
	return nil
}

// place is a directory, by the path in the names of its files and by its path
// without links.
type place struct {
	name, real string
	above      []string // real names of the directories that lead here by name
}

// dir scans a directory and its contents.
func (s *scan) dir(p place) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if s.dirs++; s.dirs > maxDirs {
		s.lost(p.name, fmt.Errorf("there are more than %d directories", maxDirs))
		return nil
	}
	s.watch(p.real)
	entries, err := s.entries(p)
	if err != nil || s.ctx.Err() != nil {
		return s.unreadable(p, err)
	}
	for _, sub := range entries {
		if err := s.dir(sub); err != nil {
			return err
		}
	}
	return nil
}

// unreadable keeps the known files of a directory, unless it is gone.
func (s *scan) unreadable(p place, err error) error {
	switch {
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case p.name == ".":
		return err
	case !errors.Is(err, fs.ErrNotExist):
		s.lost(p.name, fmt.Errorf("the directory cannot be read: %w", cause(err)))
	}
	return nil
}

// lost reports a directory or a link, and keeps its known files.
func (s *scan) lost(name string, err error) {
	s.problems[name] = err
	s.tree.keep(name)
}

// entries scans the files of a directory and returns its directories, by name.
func (s *scan) entries(p place) (dirs []place, err error) {
	here, err := s.root.OpenRoot(p.real)
	if err != nil {
		return nil, err
	}
	defer here.Close()
	listed, err := list(here)
	if err != nil {
		return nil, err
	}
	for _, e := range listed {
		if s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		if dir, ok := s.entry(p, here, e); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// entry examines an entry of a directory, and returns it if it is a directory
// too.
func (s *scan) entry(p place, here *os.Root, e fs.DirEntry) (dir place, ok bool) {
	name := below(p.name, e.Name())
	switch {
	case ignored(e.Name()):
	case e.IsDir():
		return place{name, below(p.real, e.Name()), append(slices.Clip(p.above), p.real)}, true
	case e.Type()&fs.ModeSymlink != 0:
		return s.link(p, e.Name())
	case formatOf(e.Name()) != noFormat:
		if info, err := here.Lstat(e.Name()); err == nil {
			s.file(name, info, here, e.Name())
		} else if !errors.Is(err, fs.ErrNotExist) {
			s.lost(name, cause(err))
		}
	}
	return place{}, false
}

// list returns the contents of a directory, by name.
func list(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// link examines the target of a link, and returns it if it is a directory.
func (s *scan) link(p place, base string) (dir place, ok bool) {
	s.links++
	name := below(p.name, base)
	d, err := resolve(s.root, below(p.real, base))
	for _, by := range d.by {
		s.watch(by)
	}
	switch {
	case err != nil:
		s.lost(name, err)
	case d.info.IsDir():
		above := append(slices.Clip(p.above), p.real)
		if slices.Contains(above, d.name) {
			s.lost(name, fmt.Errorf("the link leads back up to %s, and so without end", d.name))
			return place{}, false
		}
		return place{name, d.name, above}, true
	case formatOf(base) != noFormat:
		s.file(name, d.info, s.root, name)
	}
	return place{}, false
}

// file examines a file, and reads it if it was touched: under its name below
// from, which is the root, or its own directory, since then the path need not
// be walked again.
func (s *scan) file(name string, info fs.FileInfo, from *os.Root, called string) {
	_, must := s.read[name]
	if !must && !s.tree.touchedSince(name, stampOf(info)) {
		s.tree.saw(name)
		return
	}
	if c, gone := read(from, called, s.limit); !gone {
		s.tree.put(name, c)
	}
}
