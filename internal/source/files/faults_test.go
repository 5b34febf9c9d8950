package files

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/faults"
	"github.com/watchtide/watchtide/stream"
)

// TestFaults subjects the source to the faults of a directory.
func TestFaults(t *testing.T) {
	d := newDisk(t)
	w := writer{d}
	for _, dir := range []string{"a", "b", "c"} {
		d.mkdir(dir)
	}
	away := filepath.Join(filepath.Dir(d.dir), "away")
	faults.Run(t, &faults.Rig{
		Name: "files", Source: d.source(Config{}), Counts: true,
		Put: w.put, Delete: w.delete, List: w.list,
		Key: func(i int) string { return string(rune('a'+i%3)) + "/" + string(rune('a'+i)) },
		More: []faults.Fault{
			{Name: "directory moved away", Gone: true,
				Inject: func() error { return os.Rename(d.dir, away) },
				Heal:   func() error { return os.Rename(away, d.dir) }},
			{Name: "half-written file", Gone: true,
				Inject: func() error { d.write("half.json", `{"half":`); return nil },
				Heal:   func() error { return os.Remove(d.path("half.json")) }},
			{Name: "moved away and back at once", Inject: func() error {
				if err := os.Rename(d.dir, away); err != nil {
					return err
				}
				return os.Rename(away, d.dir)
			}},
		},
	})
}

// writer writes files as careful programs do.
type writer struct{ disk }

// put makes no directory: where the directory is gone, nothing can be written.
func (w writer) put(_ context.Context, key, value string) (stream.Resource, error) {
	temporary := w.path(key + ".tmp")
	if err := os.WriteFile(temporary, []byte(value), 0o644); err != nil {
		return stream.Resource{}, err
	}
	err := os.Rename(temporary, w.path(key+".json"))
	return stream.Resource{Key: key, Value: []byte(value)}, err
}

func (w writer) delete(_ context.Context, key string) (uint64, error) {
	return 0, os.Remove(w.path(key + ".json"))
}

func (w writer) list(context.Context) (all []stream.Resource, revision uint64, err error) {
	err = filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		value, err := os.ReadFile(path)
		if name, ok := strings.CutSuffix(path, ".json"); ok && json.Valid(value) {
			key, _ := filepath.Rel(w.dir, name)
			all = append(all, stream.Resource{Key: filepath.ToSlash(key), Value: value})
		}
		return err
	})
	return all, 0, err
}
