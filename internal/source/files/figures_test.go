package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
	"github.com/watchtide/watchtide/internal/streamtest/figures"
)

// BenchmarkUpstream measures the source beside fsnotify alone: see package figures.
func BenchmarkUpstream(b *testing.B) {
	dir := b.TempDir()
	source, err := New(Config{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	figures.Run(b, figures.Rig{
		Source: source,
		Put: func(_ context.Context, i int, value []byte) error {
			return replaceFile(filepath.Join(dir, fmt.Sprintf("%02d/key-%06d.json", i%100, i)), value)
		},
		Raw: func(ctx context.Context, primed func(), changed func([]byte)) error {
			return followRaw(ctx, dir, primed, changed)
		},
	})
}

// replaceFile writes to another file and renames it over the old one.
func replaceFile(path string, value []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", value, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// followRaw is a program that uses only the library. Directories do not come and
// go here.
func followRaw(ctx context.Context, dir string, primed func(), changed func(value []byte)) error {
	watcher, err := fsnotify.NewBufferedWatcher(1024)
	if err != nil {
		return err
	}
	defer watcher.Close()
	values := map[string][]byte{}
	read := func(path string) error {
		if filepath.Ext(path) != ".json" {
			return nil
		}
		value, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		values[path] = value
		changed(value)
		return nil
	}
	scan := func() error {
		return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // it was renamed
				return nil
			case err != nil:
				return err
			case entry.IsDir():
				return watcher.Add(path)
			}
			return read(path)
		})
	}
	if err := scan(); err != nil {
		return err
	}
	primed()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-watcher.Events:
			err = read(e.Name)
		case err = <-watcher.Errors:
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				err = scan()
			}
		}
		if err != nil {
			return err
		}
	}
}
