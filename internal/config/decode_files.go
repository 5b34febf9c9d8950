package config

import (
	"fmt"
	"path/filepath"

	"github.com/watchtide/watchtide/stream/source/files"
)

// files returns the readers for the keys of a source of type files.
func (d *decoder) files(f *FilesSource) map[string]field {
	return map[string]field{
		"dir":             d.directory(&f.Dir),
		"max_value_bytes": d.size(&f.MaxValueBytes),
		"max_bytes":       d.size(&f.MaxBytes),
		"rescan":          d.rescan(f),
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

// rescan reads a time between scans, or 0s.
func (d *decoder) rescan(f *FilesSource) field {
	want := fmt.Sprintf("a duration of at least %s, or 0s for none", files.MinRescan)
	read := d.durationFrom(want, 0, &f.Rescan)
	return d.offAtZero(func(v value) {
		read(v)
		if 0 < f.Rescan && f.Rescan < files.MinRescan {
			d.errorf(v, "want %s", want)
		}
	}, &f.Rescan)
}
