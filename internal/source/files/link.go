package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// destination is the target of a symbolic link.
type destination struct {
	name string // below the root, without links
	info fs.FileInfo
	by   []string // directories that were looked up on the way: changes there may make it lead elsewhere
}

// maxHops is how many links are followed on one path, as on most systems.
const maxHops = 40

// resolve follows a link step by step, to find the directories on its path. Its
// result is a hint: files are read through the root.
func resolve(root *os.Root, link string) (d destination, err error) {
	d.name = "."
	rest, hops := strings.Split(link, "/"), 0
	for len(rest) > 0 {
		step := rest[0]
		rest = rest[1:]
		target, err := d.step(root, step)
		if err != nil {
			return d, err
		}
		if target == "" {
			continue
		}
		if hops++; hops > maxHops {
			return d, errors.New("the link leads to itself")
		}
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
	}
	if d.info == nil { // it ends in the directory from which it came up
		d.info, err = root.Lstat(d.name)
	}
	return d, err
}

// step follows one more name, or returns the target if that is a link.
func (d *destination) step(root *os.Root, name string) (target string, err error) {
	switch name {
	case "", ".":
		return "", nil
	case "..":
		if d.name == "." {
			return "", errors.New("the link leads out of the directory, which is not followed")
		}
		d.name, d.info = path.Dir(d.name), nil
		return "", nil
	}
	d.by = append(d.by, d.name)
	next := below(d.name, name)
	info, err := root.Lstat(next)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the link leads nowhere: there is no %s", next)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", next, cause(err))
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		d.name, d.info = next, info
		return "", nil
	}
	target, err = root.Readlink(next)
	if err == nil && filepath.IsAbs(target) {
		err = fmt.Errorf("the link leads to %s, which is not followed; want a target relative to the link, within the directory", target)
	}
	return target, err
}
