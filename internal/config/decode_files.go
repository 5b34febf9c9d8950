package config

import (
	"path/filepath"

	"github.com/watchtide/watchtide/stream/source/files"
)

// files returns the readers for the keys of a source of type files.
func (d *decoder) files(f *FilesSource) map[string]field {
	return map[string]field{
		"dir":             d.directory(&f.Dir),
		"max_value_bytes": d.size(&f.MaxValueBytes),
		"max_bytes":       d.size(&f.MaxBytes),
		"rescan":          d.durationOf(tag{min: files.MinRescan.String(), least: int64(files.MinRescan), off: true}, &f.Rescan),
	}
}

// directory reads the name of a directory, relative to the configuration.
// Its existence is not checked here.
func (d *decoder) directory(into *string) field {
	read := d.strThat("the name of a directory", func(s string) bool { return s != "" }, into)
	return func(v value) {
		read(v)
		if *into != "" && !filepath.IsAbs(*into) {
			*into = filepath.Join(d.dir, *into)
		}
	}
}
