package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
)

// look reads the touched files in the current directory. A directory that
// replaces it meanwhile is read as well, so that no state of a directory that
// is being removed is published.
func (w *watching) look(ctx context.Context) error {
	// Where a link is moved from one directory to the next, the first may be
	// deleted while the path through the link is still being followed.
	const tries = 10
	for missing := 0; ; {
		settled, err := w.lookOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist) && missing < tries:
			missing++
		case err != nil:
			return w.unusable(err)
		case settled:
			w.touched = touched{names: map[string]struct{}{}}
			return nil
		}
	}
}

// lookOnce reports whether the directory was the same from start to end.
func (w *watching) lookOnce(ctx context.Context) (bool, error) {
	root, same, err := w.openDir()
	if err != nil {
		return false, err
	}
	defer root.Close()
	if !same {
		w.touched.all, w.touched.renew = true, true
	}
	if err := w.lookInto(ctx, root); err != nil {
		return false, err
	}
	return w.unmoved(), nil
}

func (w *watching) lookInto(ctx context.Context, root *os.Root) error {
	if !w.touched.all {
		if err := w.lookAt(ctx, root); err != nil {
			return err
		}
	}
	if !w.touched.all { // also by lookAt
		return nil
	}
	return w.scan(ctx, root)
}

// scan reads the whole directory.
func (w *watching) scan(ctx context.Context, root *os.Root) error {
	if w.touched.renew {
		w.hints.renew()
	}
	s := &scan{
		ctx: ctx, root: root, limit: w.config.MaxValueBytes, tree: w.tree,
		read: w.touched.names, watch: w.hints.watch,
	}
	if err := s.all(); err != nil {
		return err
	}
	w.problems, w.links = s.problems, s.links
	if err := w.hints.problem(); err != nil {
		w.problems["."] = err
	}
	return nil
}

// lookAt looks at single files. One that turns out to be something else requires
// a scan.
func (w *watching) lookAt(ctx context.Context, root *os.Root) error {
	for name := range w.touched.names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			w.tree.remove(name)
		case err != nil || info.IsDir() || info.Mode()&fs.ModeSymlink != 0:
			w.touched.all = true
			return nil
		case formatOf(path.Base(name)) != noFormat:
			w.lookAtFile(root, name)
		}
	}
	return nil
}

func (w *watching) lookAtFile(root *os.Root, name string) {
	if c, gone := read(root, name, w.config.MaxValueBytes); gone {
		w.tree.remove(name)
	} else {
		w.tree.put(name, c)
	}
}
